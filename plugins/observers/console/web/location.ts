// The console's URL. The URL of a view contains its state, so that the view can be bookmarked and
// shared.
import { useEffect, useState } from "preact/hooks";

/** Path prefix of the console's pages. */
export const BASE_PATH = "/console";

export interface PageLocation {
  /** Path below `BASE_PATH`, such as "/requests/0k3f…". */
  readonly path: string;
  readonly query: URLSearchParams;
}

const currentLocation = (): PageLocation => ({
  path: location.pathname.slice(BASE_PATH.length).replace(/\/+$/, "") || "/",
  query: new URLSearchParams(location.search),
});

const listeners = new Set<() => void>();
const notifyListeners = () => {
  for (const hear of listeners) hear();
};
addEventListener("popstate", notifyListeners);

/** Builds a URL. Parameters that are empty or undefined are omitted. */
export function buildUrl(path: string, set: Readonly<Record<string, string | undefined>> = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(set)) if (value) query.set(name, value);
  const text = `${query}`;
  return `${BASE_PATH}${path === "/" ? "" : path}${text && `?${text}`}`;
}

/**
 * Opens a URL of the console. `replace`: replaces the current history entry instead of adding one.
 */
export function navigate(address: string, replace = false): void {
  if (address === `${location.pathname}${location.search}`) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  notifyListeners();
}

export function useLocation(): PageLocation {
  const [place, set] = useState(currentLocation);
  useEffect(() => {
    const hear = () => set(currentLocation());
    listeners.add(hear);
    return () => void listeners.delete(hear);
  }, []);
  return place;
}

/** Returns a query parameter and its setter. A value equal to `usual` is removed from the URL. */
export function useQueryParam(name: string, usual = ""): [string, (to: string) => void] {
  const { path, query } = useLocation();
  const set = (to: string) => {
    const all = Object.fromEntries(new URLSearchParams(location.search));
    navigate(buildUrl(path, { ...all, [name]: to === usual ? undefined : to }), true);
  };
  return [query.get(name) ?? usual, set];
}

/** Handles clicks on links within the console. The browser handles all other links. */
export function handleLinkClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(BASE_PATH)) return;
  if (link.hash) return;
  event.preventDefault();
  navigate(`${link.pathname}${link.search}`);
}
