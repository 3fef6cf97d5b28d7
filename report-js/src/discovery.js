// Page of a discovery: figures, selected group, and table of groups.

import { chosenPanel } from "./chosen.js";
import { byId, h } from "./dom.js";
import { groupTable } from "./grouptable.js";
import { classesPicture } from "./pictures/classes.js";
import { genomePicture } from "./pictures/genome.js";
import { heldOutPictures } from "./pictures/heldout.js";
import { groupsPicture } from "./pictures/groups.js";
import { markersPicture } from "./pictures/markers.js";
import { pixelPicture } from "./pictures/pixels.js";
import { scorePicture } from "./pictures/score.js";

// State shared by all parts of the page: the data and the selected group.
class Page {
  constructor(data) {
    this.data = data;
    this.groups = data.groups;
    this.members = data.members;
    this.selected = data.groups.n ? 0 : null;
    this.listeners = [];
  }

  onSelect(listener) {
    this.listeners.push(listener);
  }

  select(g, announce = false) {
    if (g === this.selected) return;
    this.selected = g;
    for (const listener of this.listeners) listener(g, announce);
  }

  memberName(m) {
    return this.members.name ? this.members.name[m] : `feature ${this.members.feature[m]}`;
  }

  annotationsOf(...names) {
    return Object.fromEntries(names.map((name) => [name, this.members.annotations?.[name]]));
  }
}

export function discoveryPage(data) {
  const page = new Page(data);
  const pictures = byId("pictures");
  const made = [];
  if (data.curve && data.curve.sizes.length > 1) made.push(scorePicture(data));
  if (page.groups.n) made.push(groupsPicture(page));
  made.push(...heldOutPictures(data));
  if (data.image && page.groups.n) made.push(pixelPicture(page));
  if (data.genome && page.groups.n) made.push(genomePicture(page));
  if (
    data.class_effects &&
    (data.targets ?? data.classes)?.length > (data.targets ? 1 : 2) &&
    page.groups.n
  )
    made.push(classesPicture(page));
  if (data.class_effects && !data.targets && data.classes?.length > 2 && page.groups.n)
    made.push(markersPicture(page));
  if (page.groups.n) made.push(chosenPanel(page));
  const small = made.filter((part) => !part.node.classList.contains("wide"));
  if (small.length === 1) small[0].node.classList.add("alone");
  pictures.replaceChildren(...made.map((part) => part.node));
  for (const part of made) part.redraw();
  copyButton(byId("copy-methods"), byId("methods"));
  if (page.groups.n) byId("groups").replaceChildren(...groupTable(page));
  else byId("groups").replaceChildren(h("p", {}, "No groups were found."));
}

// Browsers without access to the clipboard copy the selection.
function copyButton(button, source) {
  if (!button || !source) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      getSelection().selectAllChildren(source);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
