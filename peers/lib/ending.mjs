// What a test has started is ended when the test ends, the latest first: a program before the folder it writes into.
const endings = new WeakMap();

/** Runs `end` when the test `t` ends, however it ends; later ones run first, and none keeps another from running. */
export function atEnd(t, end) {
  let stack = endings.get(t);
  if (!stack) {
    stack = [];
    endings.set(t, stack);
    t.after(() => unwind(stack));
  }
  stack.push(end);
}

async function unwind(stack) {
  const failures = [];
  while (stack.length > 0) {
    try {
      await stack.pop()();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "a test could not clean up");
}
