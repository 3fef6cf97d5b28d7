"""A real browser (Debian's Chromium, driven by selenium). The tests are skipped if it is not installed."""

import json
import shutil
import time
from pathlib import Path

import pytest

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
DRIVER = shutil.which("chromedriver")


def pytest_collection_modifyitems(items):
    """Mark all tests of this folder, which require a browser; ``make test`` excludes them."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


class Browser:
    """A browser window with a page."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, width=1280, height=900, dark=False, print_media=False):
        self.driver.get("about:blank")
        self.messages()
        self.requests()
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.cdp("Emulation.setEmulatedMedia", media="print" if print_media else "", features=features)
        self.driver.get(Path(path).resolve().as_uri())
        self.wait("return document.documentElement.dataset.ready || document.documentElement.dataset.failed")
        failed = self.run("return document.documentElement.dataset.failed")
        assert failed is None, failed
        return self

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script, *arguments, seconds=30):
        """Return the result of a script as soon as it is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"Not true within {seconds} s: {script}")

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector, words):
        field = self.driver.find_element("css selector", selector)
        field.clear()
        if words:
            field.send_keys(words)
        else:
            self.run("document.querySelector(arguments[0]).dispatchEvent(new Event('input'))", selector)

    def messages(self):
        """Return the messages of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return the addresses requested since the last call."""
        entries = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and chromedriver are not installed (make test-browser installs them if permitted)")
    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    downloads = tmp_path_factory.mktemp("downloads")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(DRIVER))
    window = Browser(driver)
    window.downloads = downloads
    yield window
    driver.quit()


@pytest.fixture
def quiet(browser):
    """Return the browser, and check afterwards that there were no messages and no requests except for the page."""
    yield browser
    assert browser.messages() == []
    asked = [url for url in browser.requests() if not url.startswith(("about:", "data:", "blob:"))]
    assert all(url.startswith("file:") and url.endswith(".html") for url in asked), asked
