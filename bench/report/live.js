// Draws the page of a run that goes on: the server sends the inner part once a second, and only what has changed is
// replaced, so that nothing flickers and the reader stays where he is.
function patch(old, next) {
  if (old.isEqualNode(next)) return;
  const holder = old.matches("main, article, section, .charts, .scroll");
  if (!holder || old.tagName !== next.tagName || old.className !== next.className || old.childElementCount !== next.childElementCount) {
    old.replaceWith(next);
    return;
  }
  const parts = [...next.children];
  [...old.children].forEach((part, i) => patch(part, parts[i]));
}
const live = document.querySelector(".live"), events = new EventSource("events");
function draw(event) {
  const next = document.createElement("main"), html = JSON.parse(event.data);
  if (html === null) return false;
  next.innerHTML = html;
  patch(document.querySelector("main"), next);
  showValues();
  return true;
}
function state(text, over) {
  live.textContent = text;
  live.classList.toggle("over", over);
}
events.addEventListener("open", () => state("live", false));
events.addEventListener("page", draw);
events.addEventListener("end", (event) => {
  state(draw(event) ? "the run has ended: this is its result" : "the run has ended without a result", true);
  events.close();
});
events.addEventListener("error", () => state("the run cannot be reached: it has ended, or was killed", true));
