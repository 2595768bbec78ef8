// Where commands are at the admin listener, and by which methods.
import { fail } from "../../model/error.ts";
import type { RegisteredCommand } from "../../admin/dispatch/command-dispatcher.ts";

export const API_PATH = "/admin/v1";
/** Signing in with the operators' identity provider. */
export const OIDC_PATH = `${API_PATH}/oidc`;
export const OPENAPI_PATH = "/admin/openapi.json";

/** Whether a path is the API's: no plugin serves there. */
export const isApiPath = (path: string): boolean =>
  path === API_PATH || path.startsWith(`${API_PATH}/`) || path === OPENAPI_PATH;

/** What changes nothing may be asked for in an address too. */
export const commandMethodsOf = ({ spec }: Pick<RegisteredCommand, "spec">): readonly string[] =>
  spec.writes ? ["POST"] : ["GET", "POST"];

/** "store/head" keeps its stroke: the path reads as the command does. */
export const commandPathOf = (name: string): string =>
  `${API_PATH}/${name.split("/").map(encodeURIComponent).join("/")}`;

export function commandNameIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(API_PATH.length + 1));
  } catch {
    return fail("invalid", "The path is not well encoded.", { code: "bad_path" });
  }
}
