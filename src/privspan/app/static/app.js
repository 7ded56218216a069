// What the pages do beyond forms: the forecast follows the numbers, progress is told, a button is pressed once.
// Everything works without this.
"use strict";

document.documentElement.classList.add("scripted");

const PAUSE = 250; // milliseconds after the last key
const LOOK = 1000; // milliseconds between two looks at a release

for (const form of document.querySelectorAll("form[data-forecast]")) {
  const parts = ["picture", "meaning"].map((name) => document.getElementById(name));
  let waiting = 0;
  let asked = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const mine = ++asked;
      const numbers = new URLSearchParams(new FormData(form));
      numbers.delete("csrf");
      parts.forEach((part) => part.classList.add("waiting"));
      try {
        const answer = await fetch(`${form.dataset.forecast}?${numbers}`);
        const text = await answer.text();
        if (mine === asked && answer.ok) {
          const found = new DOMParser().parseFromString(text, "text/html");
          for (const part of parts) part.replaceChildren(...found.getElementById(part.id).childNodes);
        }
      } catch {
        // the app has ended; the picture stays as it was
      }
      if (mine === asked) parts.forEach((part) => part.classList.remove("waiting"));
    }, PAUSE);
  });
}

for (const line of document.querySelectorAll("[data-progress]")) {
  const look = async () => {
    try {
      const answer = await fetch(line.dataset.progress);
      const { state, said } = await answer.json();
      if (state !== "running") return location.reload();
      if (line.textContent !== said) line.textContent = said;
    } catch {
      line.textContent = "The app does not answer. Start it again: the result is on disk.";
    }
    setTimeout(look, LOOK);
  };
  setTimeout(look, LOOK);
}

for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}
// A page that comes back from memory has its buttons again.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
