// Where commands are at the admin listener, and by which methods.
import { fail } from "../../model/error.ts";
import type { KnownCommand } from "../control/gate.ts";

export const API = "/admin/v1";
/** Signing in with the operators' identity provider. */
export const OIDC = `${API}/oidc`;
export const OPENAPI = "/admin/openapi.json";

/** Whether a path is the API's: no plugin serves there. */
export const isApi = (path: string): boolean =>
  path === API || path.startsWith(`${API}/`) || path === OPENAPI;

/** What changes nothing may be asked for in an address too. */
export const methodsOf = ({ facts }: Pick<KnownCommand, "facts">): readonly string[] =>
  facts.writes ? ["POST"] : ["GET", "POST"];

/** "store/head" keeps its stroke: the path reads as the command does. */
export const pathOf = (name: string): string =>
  `${API}/${name.split("/").map(encodeURIComponent).join("/")}`;

export function nameIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(API.length + 1));
  } catch {
    return fail("invalid", "The path is not well encoded.", { code: "bad_path" });
  }
}
