// The page of a comparison, and other pages of tables: tabs, copy buttons, CSV.
function tables() {
  const asked = location.hash, tabs = tabsOf({});
  framed();
  const begun = tabs.begin(asked);
  if (begun.place && !begun.isTab) begun.place.scrollIntoView({ block: "start" }); else if (begun.isTab) tabs.uncover();
  document.body.dataset.ready = "1";
}
tables();
