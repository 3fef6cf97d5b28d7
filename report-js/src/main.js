// Entry point: decode the data and draw the page.

import { comparisonPage } from "./comparison.js";
import { readData } from "./data.js";
import { discoveryPage } from "./discovery.js";
import { byId } from "./dom.js";
import { profilePage } from "./profile.js";

const PAGES = { discovery: discoveryPage, comparison: comparisonPage, profile: profilePage };

async function start() {
  try {
    const data = await readData(byId("data"));
    document.documentElement.classList.add("live");
    PAGES[data.kind](data);
    byId("plain")?.remove();
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        // Time since the start of navigation.
        document.documentElement.dataset.opened = String(Math.round(performance.now()));
        document.documentElement.dataset.ready = "true";
      }),
    );
  } catch (error) {
    // Old browsers keep the plain table.
    document.documentElement.classList.remove("live");
    document.documentElement.dataset.failed = String(error);
    const note = byId("failed");
    if (note) note.hidden = false;
  }
}

start();
