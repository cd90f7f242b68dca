/* Sends clicks: rankstream.click({impression_id, query_id, item_id, position, action}).
   Or mark up the page: data-rankstream-list="IMPRESSION" (and data-rankstream-query) on
   a list, data-rankstream-item="ID" (and data-rankstream-position) on each item. */
(function (page) {
  "use strict";
  var script = page.currentScript;
  var url = new URL("v1/click", script ? script.src : page.baseURI).href;
  function unique() {
    if (window.crypto && crypto.randomUUID) return crypto.randomUUID();
    var text = "";
    while (text.length < 32) text += Math.random().toString(16).slice(2);
    return text.slice(0, 32);
  }
  function click(event) {
    var body = JSON.stringify(Object.assign({ event_id: unique() }, event));
    try {
      if (navigator.sendBeacon && navigator.sendBeacon(url, body)) return true;
    } catch (refused) { /* an old browser, or one that was told not to */ }
    if (!window.fetch) return false;
    fetch(url, { method: "POST", body: body, keepalive: true, mode: "no-cors" })
      .catch(function () {});
    return true;
  }
  function clicked(happened) {
    var at = happened.target;
    var item = at && at.closest && at.closest("[data-rankstream-item]");
    var list = item && item.closest("[data-rankstream-list]");
    if (!list) return;
    var event = {
      impression_id: list.dataset.rankstreamList,
      item_id: item.dataset.rankstreamItem
    };
    var query = list.dataset.rankstreamQuery;
    var position = Number(item.dataset.rankstreamPosition);
    if (query) event.query_id = query;
    if (position) event.position = position;
    click(event);
  }
  page.addEventListener("click", clicked, true);
  page.addEventListener("auxclick", clicked, true);
  window.rankstream = { click: click };
})(document);
