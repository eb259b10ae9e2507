// What the pages add to HTML: times in the zone of the reader, plots drawn from their tables, and live parts that wait while nobody looks.
"use strict";

(() => {
  const plots = new WeakMap();
  const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });

  function showTimes(root) {
    for (const one of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const at = new Date(one.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      one.title = one.textContent;
      one.textContent = zone.format(at);
      one.dataset.local = "";
    }
  }

  // A plot is drawn from the table below it: the first column is x, each further column a series.
  function read(table) {
    const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent.trim());
    const rows = [...table.tBodies[0].rows];
    const labels = rows.map((row) => row.cells[0].textContent.trim());
    const times = rows.map((row) => row.cells[0].querySelector("time"));
    const isTime = times.length > 0 && times.every(Boolean);
    const xs = isTime ? times.map((one) => Date.parse(one.dateTime) / 1000) : rows.map((_, index) => index);
    const series = names.map((_, index) =>
      rows.map((row) => {
        const text = row.cells[index + 1].dataset.value ?? row.cells[index + 1].textContent;
        const value = Number.parseFloat(text.replaceAll(",", ""));
        return Number.isNaN(value) ? null : value;
      }),
    );
    return { names, labels, isTime, xs, series };
  }

  function colour(number) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--series-${(number % 8) + 1}`).trim();
  }

  function stack(series) {
    const sums = series[0].map(() => 0);
    return series.map((values) => values.map((value, index) => (sums[index] += value ?? 0)));
  }

  function draw(figure) {
    const table = figure.querySelector("table");
    const canvas = figure.querySelector(".canvas");
    if (!table || !canvas || typeof uPlot === "undefined") return;
    const found = read(table);
    if (found.xs.length === 0) return;
    plots.get(figure)?.destroy();
    canvas.replaceChildren();
    const isStacked = figure.dataset.plot === "stacked";
    const isBars = figure.dataset.plot === "bars" || isStacked;
    const shown = isStacked ? stack(found.series) : found.series;
    const order = shown.map((_, index) => index);
    if (isStacked) order.reverse(); // the sum of all is drawn first, and the others over it
    const style = getComputedStyle(document.documentElement);
    const axis = { stroke: style.getPropertyValue("--quiet"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
    const bars = isBars ? uPlot.paths.bars({ size: [0.9, 60], align: 0 }) : null;
    const unit = figure.dataset.unit ? ` ${figure.dataset.unit}` : "";
    const plot = new uPlot(
      {
        width: Math.max(canvas.clientWidth, 200),
        height: 220,
        cursor: { drag: { x: false, y: false } },
        legend: { show: false },
        scales: { x: { time: found.isTime, range: isBars && !found.isTime ? [-0.6, found.xs.length - 0.4] : undefined }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
        axes: [
          found.isTime ? axis : { ...axis, splits: () => found.xs, values: (_, splits) => thinned(splits, found.labels, canvas.clientWidth) },
          { ...axis, size: 64, values: (_, splits) => splits.map((value) => short.format(value) + unit) },
        ],
        series: [
          {},
          ...order.map((index) => ({
            stroke: colour(index),
            fill: isBars ? colour(index) : undefined,
            width: isBars ? 0 : 2,
            paths: bars ?? undefined,
            points: { show: !isBars && found.xs.length < 3 },
          })),
        ],
      },
      [found.xs, ...order.map((index) => shown[index])],
      canvas,
    );
    plots.set(figure, plot);
    legend(figure, found.names);
  }

  function thinned(splits, labels, width) {
    const every = Math.max(1, Math.ceil((splits.length * 70) / Math.max(width - 64, 70)));
    return splits.map((at, index) => (index % every === 0 ? labels[at] : ""));
  }

  function legend(figure, names) {
    figure.querySelector(".legend")?.remove();
    if (names.length < 2) return;
    const list = document.createElement("ul");
    list.className = "legend";
    names.forEach((name, index) => {
      const item = document.createElement("li");
      const mark = document.createElement("i");
      mark.className = `series-${(index % 8) + 1}`;
      mark.setAttribute("aria-hidden", "true");
      item.append(mark, name);
      list.append(item);
    });
    figure.querySelector(".canvas").after(list);
  }

  function begin(root) {
    showTimes(root);
    for (const figure of root.querySelectorAll("figure.plot")) draw(figure);
  }

  // An action that cannot be undone is confirmed.
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  let opened = [];
  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.target;
    if (document.hidden || (part.dataset.live !== undefined && part.contains(document.activeElement))) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    opened = [...event.target.querySelectorAll("details[open][id]")].map((one) => one.id);
  });
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    plots.get(event.target)?.destroy(); // else its listeners keep what is replaced
    plots.delete(event.target);
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    begin(event.target.isConnected ? event.target : document);
  });

  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    for (const figure of document.querySelectorAll("figure.plot")) draw(figure);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => begin(document));

  begin(document);
})();
