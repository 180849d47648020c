// Ctrl+Enter runs the statement; questions are found by their words.
document.getElementById("sql-form")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
});
document.getElementById("find-question").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/);
  for (const each of document.querySelectorAll(".questions li")) {
    const text = each.textContent.toLowerCase();
    each.hidden = !words.every((word) => text.includes(word));
  }
});
