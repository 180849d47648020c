// The command and the example follow the form.
const form = document.getElementById("inject-form");
let turn = 0;
// Texts of the prompt that are as recorded would only make the address long.
function asked() {
  const data = new FormData(form);
  for (const field of form.querySelectorAll("[data-was]"))
    if (field.value === field.dataset.was) data.delete(field.name);
  return data;
}
async function update() {
  const own = ++turn, address = `${form.action}?${new URLSearchParams(asked())}`;
  const answer = await fetch(address);
  if (!answer.ok || own !== turn) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const held = document.activeElement?.name;
  for (const id of ["command-part", "example-part"])
    document.getElementById(id).replaceChildren(...fresh.getElementById(id).childNodes);
  if (!held || !held.startsWith("param.")) {
    const at = document.activeElement;
    document.querySelector("#options-part .filters").replaceWith(fresh.querySelector("#options-part .filters"));
    at?.focus?.();
  }
  history.replaceState(null, "", address);
}
form.addEventListener("change", update);
document.addEventListener("click", async (event) => {
  if (event.target.id !== "copy") return;
  await navigator.clipboard.writeText(document.getElementById("command").textContent);
  event.target.textContent = "Copied";
});
