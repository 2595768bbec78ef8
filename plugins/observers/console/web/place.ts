// Where the console is: every view is an address, and what it shows is in it, so that it can be kept and sent.
import { useEffect, useState } from "preact/hooks";

/** Under which all pages of the console are. */
export const BASE = "/console";

export interface Place {
  /** "/requests/0k3f…": behind BASE. */
  readonly path: string;
  readonly query: URLSearchParams;
}

const here = (): Place => ({
  path: location.pathname.slice(BASE.length).replace(/\/+$/, "") || "/",
  query: new URLSearchParams(location.search),
});

const heard = new Set<() => void>();
const moved = () => {
  for (const hear of heard) hear();
};
addEventListener("popstate", moved);

/** Those of `set` that are "" or undefined are taken out. */
export function addressOf(path: string, set: Readonly<Record<string, string | undefined>> = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(set)) if (value) query.set(name, value);
  const text = `${query}`;
  return `${BASE}${path === "/" ? "" : path}${text && `?${text}`}`;
}

/** `quietly`: the one before is not gone back to. */
export function go(address: string, quietly = false): void {
  if (address === `${location.pathname}${location.search}`) return;
  if (quietly) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  moved();
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const hear = () => set(here());
    heard.add(hear);
    return () => void heard.delete(hear);
  }, []);
  return place;
}

/** One word of the address: what it is, and how it is changed. What equals `usual` is not written. */
export function useWord(name: string, usual = ""): [string, (to: string) => void] {
  const { path, query } = usePlace();
  const set = (to: string) => {
    const all = Object.fromEntries(new URLSearchParams(location.search));
    go(addressOf(path, { ...all, [name]: to === usual ? undefined : to }), true);
  };
  return [query.get(name) ?? usual, set];
}

/** Links of the console's own move within it; all others are the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(BASE)) return;
  if (link.hash) return;
  event.preventDefault();
  go(`${link.pathname}${link.search}`);
}
