// Reloads the page when `runner dev` serves another version of the app. It is only in pages of `runner dev`.
{
  const shown = new URL(document.currentScript.src).searchParams.get("v");
  const events = new EventSource(EVENTS);
  events.onmessage = (event) => {
    if (event.data !== shown) {
      events.close();
      location.reload();
    }
  };
}
