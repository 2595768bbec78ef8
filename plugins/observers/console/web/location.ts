// Where the console is: every view is an address, and what it shows is in it, so that it can be kept and sent.
import { useEffect, useState } from "preact/hooks";

/** Under which all pages of the console are. */
export const BASE_PATH = "/console";

export interface PageLocation {
  /** "/requests/0k3f…": behind BASE. */
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

/** Those of `set` that are "" or undefined are taken out. */
export function buildUrl(path: string, set: Readonly<Record<string, string | undefined>> = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(set)) if (value) query.set(name, value);
  const text = `${query}`;
  return `${BASE_PATH}${path === "/" ? "" : path}${text && `?${text}`}`;
}

/** `quietly`: the one before is not gone back to. */
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

/** One word of the address: what it is, and how it is changed. What equals `usual` is not written. */
export function useQueryParam(name: string, usual = ""): [string, (to: string) => void] {
  const { path, query } = useLocation();
  const set = (to: string) => {
    const all = Object.fromEntries(new URLSearchParams(location.search));
    navigate(buildUrl(path, { ...all, [name]: to === usual ? undefined : to }), true);
  };
  return [query.get(name) ?? usual, set];
}

/** Links of the console's own move within it; all others are the browser's. */
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
