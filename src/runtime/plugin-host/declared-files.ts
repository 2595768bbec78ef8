// Reads the files that a plugin declared, and no others. They are read on demand.
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import type { DeclaredNeeds } from "../../config/sections/plugin-needs.ts";
import { fail } from "../../model/error.ts";

/** Maximum file size, in bytes. A certificate, token, or list is smaller. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads a declared file. The file itself may be a symbolic link. A link inside a declared folder
 * must stay inside that folder.
 */
export async function readDeclaredFile(
  { files, baseDir }: Pick<DeclaredNeeds, "files" | "baseDir">,
  path: string,
): Promise<Buffer> {
  const wanted = resolve(baseDir, path);
  const declared = files.find((one) => isInFolder(wanted, one));
  if (declared === undefined)
    return fail("internal", `This plugin does not declare the file ${wanted} in needs.files.`, {
      code: "not_declared",
    });
  const [real, root] = await Promise.all([realpath(wanted), realpath(declared)]);
  if (!isInFolder(real, root))
    fail(
      "internal",
      `${wanted} resolves to ${real}, which the plugin does not declare in needs.files.`,
      {
        code: "not_declared",
      },
    );
  // Opening a pipe would block, and a link that was placed here in the meantime must not be
  // followed.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) fail("invalid", `${wanted} is not a file.`);
    if (stat.size > MAX_BYTES) fail("too_large", `${wanted} is larger than ${MAX_BYTES} bytes.`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

const isInFolder = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
