"use strict";
(() => {
  const byId = id => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse(byId("study-data").textContent);

  function element(tag, attributes, text) {
    const made = document.createElement(tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function shape(tag, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // ---- The tasks of the first screen become tabs. Without scripts, and in print, all of them stand one below the other.

  const tabs = all(".tasks a");
  const panels = all(".task");

  function chooseTask(number, remember) {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === number);
      tab.tabIndex = i === number ? 0 : -1;
      panels[i].hidden = i !== number;
    });
    if (remember) history.replaceState(null, "", "#" + panels[number].id);
    if (byId("choose-task")) scatter.task(number);
  }

  function makeTabs() {
    if (!tabs.length) return;
    const list = tabs[0].closest("ul");
    list.setAttribute("role", "tablist");
    tabs.forEach((tab, i) => {
      tab.parentNode.setAttribute("role", "presentation");
      tab.setAttribute("role", "tab");
      tab.id = "tab-" + i;
      tab.setAttribute("aria-controls", panels[i].id);
      panels[i].setAttribute("role", "tabpanel");
      panels[i].setAttribute("aria-labelledby", tab.id);
      panels[i].tabIndex = 0;
      tab.addEventListener("click", event => { event.preventDefault(); chooseTask(i, true); });
    });
    list.addEventListener("keydown", event => {
      const now = tabs.indexOf(document.activeElement), last = tabs.length - 1;
      const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: last }[event.key];
      if (event.key === " ") tabs[now].click();
      if (next === undefined && event.key !== " ") return;
      event.preventDefault();
      if (next !== undefined) { tabs[(next + tabs.length) % tabs.length].focus(); chooseTask((next + tabs.length) % tabs.length, true); }
    });
    document.body.classList.add("tabbed");
  }

  // ---- Addresses inside the page: a task chooses its tab, a run opens the lists around it.

  function follow() {
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const number = panels.indexOf(target);
    if (number >= 0 && tabs.length) return chooseTask(number, false);
    for (let around = target.parentElement; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
    const more = target.matches("tbody") && target.querySelector("details");
    if (more) more.open = true;
    if (more || target.closest("details")) { target.scrollIntoView({ block: "center" }); target.focus({ preventScroll: true }); }
  }

  function markContents() {
    const links = new Map(all(".contents a").map(link => [byId(link.hash.slice(1)), link]));
    const seen = new Set();
    const watcher = new IntersectionObserver(entries => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target);
      const first = [...links.keys()].find(section => seen.has(section));
      for (const [section, link] of links) section === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }, { rootMargin: "-25% 0px -70% 0px" });
    for (const section of links.keys()) watcher.observe(section);
  }

  // ---- Columns are sorted by their headings.

  function sortable(table) {
    const bodies = all(":scope > tbody", table);
    const items = bodies.length > 1 ? bodies : all(":scope > tr", bodies[0]);
    if (items.length < 3) return;
    all("thead th:not(.still)", table).forEach(head => {
      const place = head.cellIndex, button = element("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("thead th[aria-sort]", table).forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = item => {
          const cell = (item.cells ? item : item.rows[0]).cells[place];
          const number = Number(cell.dataset.v ?? (cell.classList.contains("number") ? cell.textContent.replaceAll(",", "") : NaN));
          return { number, text: cell.textContent.trim() };
        };
        const sorted = items.map((item, i) => ({ item, i, ...key(item) })).sort((a, b) => {
          const known = Number.isNaN(a.number) - Number.isNaN(b.number);  // numbers before words, either way
          if (known) return known;
          const order = Number.isNaN(a.number) ? a.text.localeCompare(b.text) : a.number === b.number ? 0 : a.number - b.number;
          return (down ? -order : order) || a.i - b.i;
        });
        sorted[0].item.parentNode.append(...sorted.map(one => one.item));
      });
    });
  }

  // ---- The scatter of all runs.

  const OUTLINES = {  // of radius 1
    "o": "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
    "s": "M-.88-.88H.88V.88H-.88Z",
    "^": "M0-1.1L1.05.8H-1.05Z",
    "v": "M0 1.1L1.05-.8H-1.05Z",
    "<": "M-1.1 0L.8-1.05V1.05Z",
    ">": "M1.1 0L-.8-1.05V1.05Z",
    "D": "M0-1.25L1.25 0L0 1.25L-1.25 0Z",
    "P": "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "X": "M-.5-1.1L0-.6L.5-1.1L1.1-.5L.6 0L1.1 .5L.5 1.1L0 .6L-.5 1.1L-1.1 .5L-.6 0L-1.1-.5Z",
    "h": "M0-1.1L.95-.55V.55L0 1.1L-.95 .55V-.55Z",
    "p": "M0-1.1L1.05-.34L.65.9H-.65L-1.05-.34Z",
    "*": "M0-1.5L.4-.5L1.43-.46L.62.17L.9 1.2L0 .62L-.9 1.2L-.62.17L-1.43-.46L-.4-.5Z",
  };
  const RADIUS = 5, NEAR = 22;  // pixels
  const FIRST = 5;  // the place of the first measure in a run
  const FAR = 2, RUNAWAY = 0.48;  // decades: from the others to an arm, from the median of an arm to its runs
  const off = new Set();  // arms that are not shown

  const words = value => {
    if (value === null) return "none";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2).replace("e+", "e");
    return String(Number(value.toPrecision(4)));
  };
  const named = (measure, value) => words(value) + (value !== null && measure.unit ? " " + measure.unit : "");
  const headed = measure => measure.name + (measure.unit ? " [" + measure.unit + "]" : "");

  /** The upper end of a logarithmic axis: Tukey's fence, as for the printed pictures, or what shows every arm not far beyond. */
  function fence(runs, place) {
    const sorted = some => some.map(r => r[place]).filter(v => v > 0).map(Math.log10).sort((a, b) => a - b);
    const at = (logs, q) => { const t = q * (logs.length - 1), i = Math.floor(t); return logs[i] + (t - i) * ((logs[i + 1] ?? logs[i]) - logs[i]); };
    const logs = sorted(runs);
    if (!logs.length) return Infinity;
    const end = at(logs, 0.75) + 1.5 * (at(logs, 0.75) - at(logs, 0.25));
    const arms = data.arms.map((_, arm) => sorted(runs.filter(r => r[1] === arm))).filter(own => own.length);
    const near = arms.filter(own => at(own, 0.5) <= end + FAR).flatMap(own => own.filter(v => v <= at(own, 0.5) + RUNAWAY));
    return 10 ** (Math.max(end, ...near) + 1e-9);
  }

  /** Where values stand between two ends, and the ticks there. */
  function scale(values, log, from, to, room) {
    const given = values.filter(v => v !== null && (!log || v > 0)).map(v => log ? Math.log10(v) : v);
    let low = Math.min(...given), high = Math.max(...given);
    if (!given.length) [low, high] = [0, 1];
    const pad = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
    [low, high] = [low - pad, high + pad];
    const at = v => from + ((log ? Math.log10(v) : v) - low) / (high - low) * (to - from);
    const most = Math.max(2, Math.floor(Math.abs(to - from) / room));
    const ticks = [];
    if (log && high - low > 0.9) {
      const step = Math.ceil((high - low) / most), between = high - low < most / 3 ? [1, 2, 5] : [1];
      for (let d = Math.floor(low); d <= high; d += step) for (const b of step > 1 ? [1] : between) ticks.push(b * 10 ** d);
    } else {
      const [a, b] = log ? [10 ** low, 10 ** high] : [low, high], raw = (b - a) / most, ten = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map(f => f * ten).find(s => s >= raw);
      for (let v = Math.ceil(a / step); v * step <= b; v += 1) ticks.push(v * step);
    }
    return { at, ticks: ticks.filter(v => { const u = log ? Math.log10(v) : v; return u >= low && u <= high; }) };
  }

  const scatter = (() => {
    const root = byId("scatter"), svg = byId("plot"), tip = byId("tip");
    let points = [], now = null;
    if (!root) return { task() {}, start() {} };
    const task = () => data.tasks[byId("choose-task").value];
    const measure = axis => task().measures[byId("choose-" + axis).value];

    function fill() {
      const list = task().measures;
      const find = (...keys) => Math.max(0, keys.map(key => list.findIndex(m => m.key === key)).find(i => i >= 0) ?? 0);
      const start = { x: find("error:field", "closures"), y: find("error:parameter", "error:field", list.find(m => m.key.startsWith("estimate:"))?.key) };
      for (const axis of "xy") {
        const select = byId("choose-" + axis), kept = list.findIndex(m => m.key === select.dataset.key);
        select.replaceChildren(...list.map((m, i) => element("option", { value: i }, headed(m))));
        select.value = kept >= 0 ? kept : start[axis];
        byId("log-" + axis).checked = measure(axis).log;
      }
      all("#arms label[data-number]").forEach(label => label.classList.toggle("absent", !task().runs.some(r => r[1] === Number(label.dataset.number))));
      draw();
    }

    function draw() {
      leave();
      const width = svg.parentNode.clientWidth, height = Math.round(Math.min(Math.max(width * 0.56, 300), 540));
      const [mx, my] = [measure("x"), measure("y")];
      const [ix, iy] = ["x", "y"].map(axis => FIRST + Number(byId("choose-" + axis).value));
      const shown = task().runs.filter(r => !off.has(r[1]));
      const [lx, ly] = ["x", "y"].map((axis, i) => byId("log-" + axis).checked && task().runs.some(r => r[[ix, iy][i]] > 0));
      const [ex, ey] = [[lx, ix], [ly, iy]].map(([log, i]) => log && !byId("whole").checked ? fence(shown, i) : Infinity);
      const lost = (value, log, end) => value === null || (log && value <= 0) || value > end;
      const beyondX = shown.some(r => lost(r[ix], lx, ex)), beyondY = shown.some(r => lost(r[iy], ly, ey));
      const box = { left: 62, right: width - (beyondX ? 58 : 14), top: beyondY ? 44 : 12, bottom: height - 46 };
      const x = scale(shown.map(r => r[ix]).filter(v => !lost(v, lx, ex)), lx, box.left, box.right, 64);
      const y = scale(shown.map(r => r[iy]).filter(v => !lost(v, ly, ey)), ly, box.bottom, box.top, 42);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      const under = [];
      for (const v of x.ticks) under.push(shape("line", { class: "grid", x1: x.at(v), x2: x.at(v), y1: box.top, y2: box.bottom }), shape("text", { x: x.at(v), y: box.bottom + 17, "text-anchor": "middle" }, words(v)));
      for (const v of y.ticks) under.push(shape("line", { class: "grid", y1: y.at(v), y2: y.at(v), x1: box.left, x2: box.right }), shape("text", { x: box.left - 7, y: y.at(v) + 4, "text-anchor": "end" }, words(v)));
      under.push(shape("text", { class: "axis", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, headed(mx)));
      under.push(shape("text", { class: "axis", x: 0, y: 0, transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, headed(my)));
      const limits = [];
      for (const [m, s, log, across] of [[mx, x, lx, false], [my, y, ly, true]]) {
        const place = m.limit && (!log || m.limit > 0) ? s.at(m.limit) : NaN;
        if (across ? place < box.top || place > box.bottom || Number.isNaN(place) : place < box.left || place > box.right || Number.isNaN(place)) continue;
        under.push(shape("line", { class: "limit", ...(across ? { x1: box.left, x2: box.right, y1: place, y2: place } : { y1: box.top, y2: box.bottom, x1: place, x2: place }) }));
        limits.push(`${m.name} ${named(m, m.limit)}`);
      }
      if (beyondY) under.push(shape("line", { class: "edge", x1: box.left, x2: width - 4, y1: 30, y2: 30 }), shape("text", { x: box.left - 7, y: 22, "text-anchor": "end" }, "beyond"));
      if (beyondX) under.push(shape("line", { class: "edge", x1: width - 42, x2: width - 42, y1: 4, y2: box.bottom }), shape("text", { x: width - 22, y: box.bottom + 17, "text-anchor": "middle" }, "beyond"));
      points = shown.map(run => {
        const [arm, colour, marker, fewer] = data.arms[run[1]], size = marker === "*" ? RADIUS * 1.25 : RADIUS;
        const px = lost(run[ix], lx, ex) ? width - 22 : x.at(run[ix]), py = lost(run[iy], ly, ey) ? 18 : y.at(run[iy]);
        const told = `${arm}, seed ${run[2]}: ${mx.name} ${named(mx, run[ix])}, ${my.name} ${named(my, run[iy])}, ${run[3]}`;
        const node = shape("path", { class: `point ${colour}${run[4] ? (fewer ? " fewer" : "") : " failed"}`, d: OUTLINES[marker] || OUTLINES.o, transform: `translate(${px.toFixed(1)} ${py.toFixed(1)}) scale(${size})`, tabindex: -1, role: "link", "aria-label": told });
        return { run, node, x: px, y: py };
      }).sort((a, b) => a.x - b.x || a.y - b.y);
      svg.replaceChildren(...under, ...points.map(p => p.node));
      if (points.length) points[0].node.tabIndex = 0;
      const failed = shown.filter(r => !r[4]).length;
      byId("plot-words").textContent = `${shown.length} runs of ${task().name}: ${my.name} against ${mx.name}.` +
        (beyondX || beyondY ? " Failed runs and runs far beyond the others stand at the edge." : "") +
        (failed ? ` ${failed} failed; their outlines are broken.` : "") +
        (limits.length ? ` The dashed line is the statistical limit of the readings: ${limits.join(", ")}.` : "");
    }

    function show(point) {
      if (point === now) return;
      leave();
      now = point;
      const run = point.run, [mx, my] = [measure("x"), measure("y")];
      svg.classList.add("chosen");
      for (const p of points) p.node.classList.toggle("same", p.run[2] === run[2]);
      point.node.classList.add("now");
      const list = element("dl");
      const wanted = ["error:parameter", "error:field", "closures", "seconds"];
      task().measures.forEach((m, i) => {
        if (m === mx || m === my || wanted.includes(m.key)) list.append(element("dt", {}, m.name), element("dd", {}, named(m, run[FIRST + i])));
      });
      list.append(element("dt", {}, "outcome"), element("dd", {}, run[3]));
      tip.replaceChildren(element("b", {}, `${data.arms[run[1]][0]}, seed ${run[2]}`), list, element("a", { href: `#run-${run[0]}` }, "all about this run"));
      tip.hidden = false;
      const room = svg.parentNode.clientWidth, { offsetWidth: w, offsetHeight: h } = tip;
      tip.style.left = `${Math.max(0, Math.min(point.x + 14 + w > room ? point.x - w - 14 : point.x + 14, room - w))}px`;
      tip.style.top = `${Math.max(0, point.y - h / 2)}px`;
    }

    function leave() {
      now = null;
      tip.hidden = true;
      svg.classList.remove("chosen");
      all(".now", svg).forEach(node => node.classList.remove("now"));
    }

    function nearest(event) {
      const frame = svg.getBoundingClientRect(), [px, py] = [event.clientX - frame.x, event.clientY - frame.y];
      let best = null, least = NEAR;
      for (const p of points) { const d = Math.hypot(p.x - px, p.y - py); if (d < least) [best, least] = [p, d]; }
      return best;
    }

    function move(from, step) {
      const next = points[Math.min(Math.max(from + step, 0), points.length - 1)];
      points.forEach(p => { p.node.tabIndex = p === next ? 0 : -1; });
      next.node.focus();
    }

    function start() {
      root.hidden = false;
      byId("choose-task").append(...data.tasks.map((t, i) => element("option", { value: i }, t.name)));
      const buttons = [["show all", false], ["show none", true]].map(([text, hide]) => {
        const button = element("button", { type: "button" }, text);
        button.addEventListener("click", () => all("#arms input").forEach(box => { box.checked = !hide; toggle(box); }) || draw());
        return button;
      });
      byId("arms").append(...data.arms.map(([arm, colour, marker, fewer], i) => {
        const label = element("label", { "data-number": i }), box = element("input", { type: "checkbox", value: i });
        const sample = shape("svg", { class: "sample", viewBox: "-1.6 -1.6 3.2 3.2", "aria-hidden": "true" });
        sample.append(shape("path", { class: colour + (fewer ? " fewer" : ""), d: OUTLINES[marker] || OUTLINES.o }));
        box.checked = true;
        box.addEventListener("change", () => { toggle(box); draw(); });
        label.append(box, sample, arm);
        return label;
      }), ...buttons);
      byId("choose-task").addEventListener("change", event => tabs.length ? chooseTask(Number(event.target.value), false) : fill());
      for (const axis of "xy") {
        byId("choose-" + axis).addEventListener("change", event => {
          event.target.dataset.key = measure(axis).key;
          byId("log-" + axis).checked = measure(axis).log;
          draw();
        });
        byId("log-" + axis).addEventListener("change", draw);
      }
      byId("whole").addEventListener("change", draw);
      svg.addEventListener("pointermove", event => { const p = nearest(event); if (p) show(p); else if (!svg.contains(document.activeElement)) leave(); });
      svg.addEventListener("click", event => { const p = nearest(event); if (p) { move(points.indexOf(p), 0); show(p); } });
      svg.parentNode.addEventListener("pointerleave", () => { if (!svg.parentNode.contains(document.activeElement)) leave(); });
      svg.parentNode.addEventListener("focusin", event => { const p = points.find(one => one.node === event.target); if (p) show(p); });
      svg.parentNode.addEventListener("focusout", event => { if (!svg.parentNode.contains(event.relatedTarget)) leave(); });
      svg.parentNode.addEventListener("keydown", event => {
        const from = points.findIndex(p => p.node === document.activeElement);
        if (event.key === "Escape") leave();
        if (from < 0) return;
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -points.length, End: points.length }[event.key];
        if (step) { event.preventDefault(); move(from, step); }
        if (event.key === "Enter") location.hash = `#run-${points[from].run[0]}`;
      });
      tip.addEventListener("click", event => { if (event.target.hash === location.hash) follow(); });
      new ResizeObserver(() => { if (svg.parentNode.clientWidth !== Number(svg.viewBox.baseVal?.width)) draw(); }).observe(svg.parentNode);
      fill();
    }

    return { start, task(number) { byId("choose-task").value = number; fill(); } };
  })();

  /** Show or hide a method in the scatter and in every picture of the page. */
  function toggle(box) {
    box.checked ? off.delete(Number(box.value)) : off.add(Number(box.value));
    all(`[data-arm="${box.value}"]`).forEach(mark => mark.classList.toggle("off", !box.checked));
  }

  scatter.start();
  makeTabs();
  if (tabs.length) chooseTask(0, false);
  all("table.data").forEach(sortable);
  markContents();
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => all(".answers details").forEach(one => { one.open = true; }));
  follow();
})();
