"use strict";
// Shows the values of a chart at the pointer. The page says everything without it.
let pointer = null; // where the pointer was last, so that the values stay when the page is drawn anew
function showValues() {
  document.querySelectorAll(".chart output").forEach((out) => { if (out.textContent) out.textContent = ""; });
  document.querySelectorAll(".chart .cursor").forEach((cursor) => { cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); });
  const svg = pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest(".chart svg");
  if (!svg) return;
  const figure = svg.closest(".chart"), box = svg.getBoundingClientRect();
  const x = (pointer.x - box.left) * svg.viewBox.baseVal.width / box.width;
  const near = [];
  for (const line of JSON.parse(figure.dataset.values)) {
    let best = -1;
    line.x.forEach((px, i) => { if (best < 0 || Math.abs(px - x) < Math.abs(line.x[best] - x)) best = i; });
    if (best >= 0) near.push({ x: line.x[best], at: line.at[best], text: line.name + " " + line.text[best] });
  }
  if (!near.length) return;
  const nearest = near.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));
  const same = near.filter((value) => Math.abs(value.x - nearest.x) < 4); // the others lie elsewhere
  figure.querySelector("output").textContent = nearest.at + ": " + same.map((value) => value.text).join(", ");
  const cursor = svg.querySelector(".cursor");
  cursor.setAttribute("x1", nearest.x);
  cursor.setAttribute("x2", nearest.x);
}
document.addEventListener("pointermove", (event) => { pointer = { x: event.clientX, y: event.clientY }; showValues(); });
document.documentElement.addEventListener("pointerleave", () => { pointer = null; showValues(); });
