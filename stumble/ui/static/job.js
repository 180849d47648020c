// A run that was watched to its end leads to its verdict.
import "./frame.js";
const job = document.getElementById("job");
let watched = job.dataset.state === "running";
document.addEventListener("refreshed", () => {
  const found = document.querySelector("#found a");
  if (watched && found) location.assign(found.href);
});
