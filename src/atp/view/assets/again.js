// A page that was loaded without its token. This tab has kept it, or another tab of the view tells it.
(() => {
  const again = (token) => location.replace(`/?token=${encodeURIComponent(token)}${location.hash}`);
  const kept = sessionStorage.getItem("atp-token");
  sessionStorage.removeItem("atp-token"); // a token of an earlier server would lead here for ever
  if (kept) return again(kept);
  const others = new BroadcastChannel("atp-token");
  others.onmessage = ({ data }) => data.token && again(data.token);
  others.postMessage({ wanted: true });
})();
