// Finds the socket route of a path. Exact paths need one lookup.
import type { MountedSocket } from "../../pipeline/exchange/mounted.ts";

export interface FoundSocket {
  readonly socket: MountedSocket;
  readonly params: { readonly [name: string]: string };
}

export type FindSocket = (path: string) => FoundSocket | undefined;

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Creates the lookup of a generation's sockets. */
export function createSocketLookup(sockets: readonly MountedSocket[]): FindSocket {
  const exact = new Map<string, FoundSocket>();
  const patterns: { readonly segments: readonly string[]; readonly socket: MountedSocket }[] = [];
  for (const socket of sockets)
    if (/[:*]/.test(socket.path)) patterns.push({ segments: socket.path.split("/"), socket });
    else exact.set(socket.path, { socket, params: NO_PARAMS });
  return (path) => exact.get(path) ?? findPattern(patterns, path.split("/"));
}

function findPattern(
  patterns: readonly { readonly segments: readonly string[]; readonly socket: MountedSocket }[],
  path: readonly string[],
): FoundSocket | undefined {
  for (const { segments, socket } of patterns) {
    const params = matchSegments(segments, path);
    if (params) return { socket, params };
  }
  return undefined;
}

/** Returns the decoded parameters, or undefined if the path does not match. */
function matchSegments(
  pattern: readonly string[],
  path: readonly string[],
): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const rest = /^\*\*:(\w+)$/.exec(part);
    const value = decode(rest ? path.slice(i).join("/") : path[i]);
    if (value === undefined) return undefined;
    if (rest) return value === "" ? undefined : { ...params, [rest[1]!]: value };
    if (part.startsWith(":") && value !== "") params[part.slice(1)] = value;
    else if (part !== path[i]) return undefined;
  }
  return pattern.length === path.length ? params : undefined;
}

function decode(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
