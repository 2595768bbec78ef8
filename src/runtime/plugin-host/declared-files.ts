// Files that a plugin has declared, and nothing else of the disk: read when it asks.
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import type { DeclaredNeeds } from "../../config/sections/plugin-needs.ts";
import { fail } from "../../model/error.ts";

/** A certificate, a token, a list: what is larger is no configuration. */
const MAX_BYTES = 16 * 1024 * 1024;

/** A declared file may be a link; what is in a declared folder may lead elsewhere in it, and nowhere else. */
export async function readDeclaredFile(
  { files, baseDir }: Pick<DeclaredNeeds, "files" | "baseDir">,
  path: string,
): Promise<Buffer> {
  const wanted = resolve(baseDir, path);
  const declared = files.find((one) => isInFolder(wanted, one));
  if (declared === undefined)
    return fail("internal", `This plugin does not declare the file ${wanted} in its needs.files.`, {
      code: "not_declared",
    });
  const [real, root] = await Promise.all([realpath(wanted), realpath(declared)]);
  if (!isInFolder(real, root))
    fail("internal", `${wanted} leads to ${real}, which the plugin's needs.files do not name.`, {
      code: "not_declared",
    });
  // A pipe would be waited for, and a link that was put there meanwhile followed.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) fail("invalid", `${wanted} is no file.`);
    if (stat.size > MAX_BYTES) fail("too_large", `${wanted} is larger than ${MAX_BYTES} bytes.`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

const isInFolder = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
