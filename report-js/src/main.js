// The start: decode the data, and draw the page that they are for.

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
        // Since the navigation began.
        document.documentElement.dataset.opened = String(Math.round(performance.now()));
        document.documentElement.dataset.ready = "true";
      }),
    );
  } catch (error) {
    // The plain table stays where it is; an old browser can read that.
    document.documentElement.classList.remove("live");
    document.documentElement.dataset.failed = String(error);
    const note = byId("failed");
    if (note) note.hidden = false;
  }
}

start();
