// The reference server's form with an answer for each of its thirteen fields, none of them the default.

/** The answer as the server is to receive it. */
export const EVERY_FIELD = {
  name: "Ada Lovelace",
  check: true,
  firstLine: "Call me Ishmael.",
  email: "ada@example.com",
  homepage: "https://example.com/ada?a=1&b=2",
  birthdate: "1815-12-10",
  integer: 7,
  number: 2.5,
  untitledSingleSelectEnum: "Joey",
  untitledMultipleSelectEnum: ["Piano", "Bass"],
  titledSingleSelectEnum: "hero-2",
  titledMultipleSelectEnum: ["fish-2", "fish-3"],
  legacyTitledEnum: "pet-4",
};

/** What the server fills in where only the name is given. */
export const DEFAULTS = {
  firstLine: "It was a dark and stormy night.",
  integer: 42,
  number: 3.14,
  untitledSingleSelectEnum: "Monica",
  untitledMultipleSelectEnum: ["Guitar"],
  titledSingleSelectEnum: "hero-1",
  titledMultipleSelectEnum: ["fish-1"],
  legacyTitledEnum: "pet-1",
};

/** What the tool's result says that it was answered. */
export function rawResult(text) {
  return JSON.parse(text.split("Raw result: ")[1]);
}
