// What the pages do more with a script: follow the event stream, and keep the one who types informed.
// Without it everything still works; nothing here decides anything.
"use strict";
(() => {
  const main = document.querySelector("main");
  const live = main?.dataset.live;
  const say = (text) => {
    const place = document.getElementById("announce");
    place.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (place.textContent = ""), 8000);
  };

  document.getElementById("problems")?.focus();

  // Relative times stay true while the page is open.
  const ago = (ms) => {
    const seconds = Math.floor(Math.abs(ms) / 1000);
    if (seconds < 10) return "just now";
    const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
    const [size, unit] = units.find(([size]) => seconds >= size);
    const count = Math.floor(seconds / size);
    const said = `${count} ${unit}${count === 1 ? "" : "s"}`;
    return ms < 0 ? `in ${said}` : `${said} ago`;
  };
  const refreshTimes = () => {
    for (const time of document.querySelectorAll("time[data-relative]")) {
      time.textContent = ago(Date.now() - Date.parse(time.dateTime));
    }
  };
  setInterval(refreshTimes, 20000);

  // A date and time that nobody has set yet is meant in the browser's own zone.
  for (const offset of document.querySelectorAll("[data-local-offset]")) {
    const local = offset.closest(".date-time").querySelector("input");
    const own = () => {
      const minutes = -(local.value ? new Date(local.value) : new Date()).getTimezoneOffset();
      const part = (number) => String(Math.floor(number)).padStart(2, "0");
      return `${minutes < 0 ? "-" : "+"}${part(Math.abs(minutes) / 60)}:${part(Math.abs(minutes) % 60)}`;
    };
    offset.value = own();
    offset.addEventListener("input", () => delete offset.dataset.localOffset);
    local.addEventListener("change", () => {
      if ("localOffset" in offset.dataset) offset.value = own();
    });
  }

  // Own words mark "Other".
  for (const text of document.querySelectorAll("[data-marks]")) {
    text.addEventListener("input", () => {
      if (text.value) document.getElementById(text.dataset.marks).checked = true;
    });
  }

  // A date that is half typed is sent as nothing at all: say so instead. Declining needs no complete form.
  const form = document.querySelector("form[data-answer]");
  form?.addEventListener("submit", (event) => {
    const half = [...form.elements].find((control) => control.validity?.badInput);
    if (half && !event.submitter?.formNoValidate) {
      event.preventDefault();
      half.reportValidity();
    }
  });

  if (!live) return;

  // Keys for working through the list. They are off while somebody types, and can be turned off for good.
  const keys = live === "list" ? listKeys() : undefined;
  function listKeys() {
    const OFF = "sayso-keys-off";
    const isOff = () => localStorage.getItem(OFF) === "1";
    const links = () => [...document.querySelectorAll(".card h2 a")];
    const card = () => document.activeElement?.closest?.(".card");
    const show = () => {
      const help = document.getElementById("keys");
      if (!help) return;
      help.hidden = false;
      const button = document.getElementById("keys-off");
      button.setAttribute("aria-pressed", String(isOff()));
      button.textContent = isOff() ? "Keys are off: turn them on" : "Turn keys off";
      count();
    };
    const count = () => {
      const place = document.getElementById("batch-count");
      const picked = document.querySelectorAll(".pick input:checked").length;
      if (place) place.textContent = picked ? `${picked} selected` : "";
    };
    const move = (by) => {
      const all = links();
      const at = all.findIndex((link) => link.closest(".card") === card());
      const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
      all[Math.min(Math.max(next, 0), all.length - 1)]?.focus();
    };
    // A key alone decides nothing: it selects the call and leads to the button, or opens what needs more than a yes.
    const decide = (button) => {
      const box = card()?.querySelector(".pick input");
      if (box) {
        box.checked = true;
        count();
        document.getElementById(button)?.focus();
        say("Selected. Press Enter to send what is selected.");
      } else {
        card()?.querySelector("h2 a")?.click();
      }
    };
    const act = {
      j: () => move(1),
      k: () => move(-1),
      o: () => card()?.querySelector("h2 a")?.click(),
      x: () => card()?.querySelector(".pick input")?.click(),
      a: () => decide("batch-approve"),
      d: () => decide("batch-deny"),
    };
    const isTyping = (target) =>
      target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio])");
    document.addEventListener("keydown", (event) => {
      const isChord = event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
      if (isChord || isOff() || isTyping(event.target) || !Object.hasOwn(act, event.key)) return;
      event.preventDefault();
      act[event.key]();
    });
    document.addEventListener("click", (event) => {
      if (event.target.id !== "keys-off") return;
      if (isOff()) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "1");
      show();
    });
    document.addEventListener("change", count);
    document.addEventListener("focusin", () => {
      for (const one of document.querySelectorAll(".card")) one.classList.toggle("current", one === card());
    });
    show();
    return { show };
  }

  const page = async () => {
    const response = await fetch(location.pathname, { headers: { accept: "text/html" }, cache: "no-store" });
    if (response.redirected) return { ended: true };
    if (!response.ok) throw new Error(String(response.status));
    return { document: new DOMParser().parseFromString(await response.text(), "text/html") };
  };

  const list = async () => {
    const { ended, document: fresh } = await page();
    if (ended) return location.assign("/login");
    const [before, after] = [document.getElementById("live"), fresh.getElementById("live")];
    const known = new Set([...before.querySelectorAll("[id]")].map((element) => element.id));
    const focused = document.activeElement?.id;
    for (const link of after.querySelectorAll(".card a[id]")) {
      if (!known.has(link.id)) link.closest(".card").classList.add("fresh");
    }
    const changed = before.dataset.announce !== after.dataset.announce;
    const picked = [...before.querySelectorAll(".pick input:checked")].map(({ id, dataset }) => [id, dataset.digest]);
    const reason = document.getElementById("batch-reason")?.value ?? "";
    before.replaceWith(document.importNode(after, true));
    // What was selected and typed stays, as long as it is about the same.
    for (const [id, digest] of picked) {
      const box = document.getElementById(id);
      if (box?.dataset.digest === digest) box.checked = true;
    }
    const field = document.getElementById("batch-reason");
    if (field) field.value = reason;
    keys?.show();
    document.title = fresh.title;
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (changed) say(after.dataset.announce);
  };

  // The round may have ended: then the form stays as it is, with everything typed, and can no longer be sent.
  const round = async () => {
    const { ended, document: fresh } = await page();
    const notice = document.getElementById("notice");
    let banner = fresh?.getElementById("outcome");
    if (ended) {
      banner = document.createElement("div");
      banner.className = "problems";
      banner.textContent = "Your session has ended. Copy what you typed, then log in again with `sayso login`.";
    }
    if (!banner) return;
    stop();
    notice.replaceChildren(document.importNode(banner, true));
    const kept = document.createElement("p");
    kept.className = "hint";
    kept.textContent = "What you typed below is still here to copy. It can no longer be sent.";
    notice.append(kept);
    for (const button of form?.querySelectorAll("button") ?? []) button.disabled = true;
    const title = notice.querySelector("h2")?.textContent.trim();
    say(title ? `This question has ended. ${title}.` : banner.textContent);
    notice.scrollIntoView({ block: "center" });
  };

  const update = live === "list" ? list : round;
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => update().catch(() => {}), 120);
  };

  // One stream for a page that is seen: hidden pages give their connection back, as browsers have few per host.
  let stream;
  const stop = () => {
    stream?.close();
    stream = undefined;
  };
  const names = ["round_created", "answered", "failed", "resolved", "execution_state"];
  const start = () => {
    if (stream || document.hidden) return;
    stream = new EventSource("/v1/events");
    // Whatever happened before the stream began, or while it was broken, is on the page that is read now.
    stream.addEventListener("snapshot", soon);
    for (const name of names) {
      stream.addEventListener(name, (event) => {
        if (live === "list" || JSON.parse(event.data).round_id === live) soon();
      });
    }
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  start();
})();
