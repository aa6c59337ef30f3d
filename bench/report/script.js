"use strict";
// Shows the values of a chart at the pointer. The page says everything without it.
for (const figure of document.querySelectorAll(".chart")) {
  const svg = figure.querySelector("svg"), out = figure.querySelector("output"), cursor = svg.querySelector(".cursor");
  let lines = null;
  const clear = () => { out.textContent = ""; cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); };
  svg.addEventListener("pointermove", (event) => {
    lines ??= JSON.parse(figure.dataset.values);
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    const texts = [];
    let at = "", drawn = 0;
    for (const line of lines) {
      let best = -1;
      line.x.forEach((px, i) => { if (best < 0 || Math.abs(px - x) < Math.abs(line.x[best] - x)) best = i; });
      if (best < 0) continue;
      texts.push(line.name + " " + line.text[best]);
      at = line.at[best];
      drawn = line.x[best];
    }
    if (!texts.length) return clear();
    out.textContent = at + ": " + texts.join(", ");
    cursor.setAttribute("x1", drawn);
    cursor.setAttribute("x2", drawn);
  });
  svg.addEventListener("pointerleave", clear);
}
