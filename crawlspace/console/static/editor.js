// The editor of rule files: numbers of lines, marks of those with findings, jumps to a line, and a warning before edits are lost.
"use strict";

(() => {
  const form = document.querySelector("form[data-editor]");
  if (!form) return;
  const area = form.querySelector("#text");
  const gutter = form.querySelector(".gutter");
  let shown = "";
  let isEdited = area.dataset.edited !== undefined;
  let current = Number(area.dataset.line) || 0;

  function marks() {
    const found = new Map();
    for (const one of form.querySelectorAll("#findings [data-line]")) {
      const line = Number(one.dataset.line);
      if (found.get(line) !== "bad") found.set(line, one.dataset.level === "error" ? "bad" : "moved");
    }
    return found;
  }

  function draw() {
    const lines = area.value.split("\n").length;
    const marked = marks();
    const key = `${lines} ${current} ${[...marked].join()}`;
    if (key === shown) return;
    shown = key;
    const parts = [];
    let text = "";
    for (let line = 1; line <= lines; line += 1) {
      const mark = marked.get(line);
      if (mark || line === current) {
        parts.push(text);
        const span = document.createElement(line === current ? "mark" : "span");
        if (mark) span.className = mark;
        span.textContent = mark ? `● ${line}` : line;
        parts.push(span);
        text = "\n";
      } else {
        text += `${line}\n`;
      }
    }
    gutter.replaceChildren(...parts, text);
    gutter.scrollTop = area.scrollTop;
  }

  function jump(line) {
    const lines = area.value.split("\n");
    if (line < 1 || line > lines.length) return;
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    current = line;
    area.focus({ preventScroll: true });
    area.setSelectionRange(start, start + lines[line - 1].length);
    const height = area.scrollHeight / Math.max(lines.length, 1);
    area.scrollTop = Math.max(0, (line - 1) * height - area.clientHeight / 2);
    area.scrollLeft = 0;
    area.scrollIntoView({ block: "nearest" });
    draw();
  }

  area.addEventListener("input", () => {
    isEdited = true;
    current = 0;
    draw();
  });
  area.addEventListener("scroll", () => {
    gutter.scrollTop = area.scrollTop;
  });
  document.addEventListener("htmx:afterSettle", draw);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#findings a[data-line]");
    if (!link) return;
    event.preventDefault();
    jump(Number(link.dataset.line));
  });
  form.addEventListener("submit", () => {
    isEdited = false;
  });
  window.addEventListener("beforeunload", (event) => {
    if (isEdited) event.preventDefault();
  });

  form.classList.add("numbered");
  if (current) jump(current);
  draw();
})();
