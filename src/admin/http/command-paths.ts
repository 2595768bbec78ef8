// The path and the methods of each command in the admin API.
import { fail } from "../../model/error.ts";
import { API_PATH } from "../../runtime/access/admin-paths.ts";
import type { RegisteredCommand } from "../dispatch/command-dispatcher.ts";

/** A command that changes nothing can also be called by GET. */
export const commandMethodsOf = ({ spec }: Pick<RegisteredCommand, "spec">): readonly string[] =>
  spec.writes ? ["POST"] : ["GET", "POST"];

/** The slash in the name of a plugin's command ("store/head") stays a slash in the path. */
export const commandPathOf = (name: string): string =>
  `${API_PATH}/${name.split("/").map(encodeURIComponent).join("/")}`;

export function commandNameIn(path: string): string {
  try {
    return decodeURIComponent(path.slice(API_PATH.length + 1));
  } catch {
    return fail("invalid", "Invalid percent-encoding in the path.", { code: "bad_path" });
  }
}
