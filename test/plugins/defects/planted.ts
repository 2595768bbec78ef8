// A plugin with one defect: a template of `tollgate new`, and one edit of its text.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");

/** One defect, and the check that must find it. */
export interface Defect {
  /** The template in which it is planted. */
  readonly in: string;
  /** The defect, for a page. */
  readonly what: string;
  /** "src/index.ts" unless told. */
  readonly file?: string;
  readonly from: string;
  readonly to: string;
  /** A second edit: from, and to. */
  readonly and?: readonly [from: string, to: string];
  /** The name of the check, without the plugin's. */
  readonly check: string;
  /** Its message. */
  readonly says: RegExp;
  /** The check runs the plugin in a separate process. */
  readonly apart?: true;
}

/**
 * The edited template in a folder of its own, next to Tollgate. Throws if the edit changes nothing.
 */
export function planted({ in: template, file = "src/index.ts", from, to, and }: Defect): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-defect-"));
  cpSync(join(ROOT, "templates", template), folder, { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules/tollgate"));
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, type: "module" }));
  const text = readFileSync(join(folder, file), "utf8");
  if (!text.includes(from)) throw new Error(`${template}/${file} has no ${from}`);
  writeFileSync(
    join(folder, file),
    and ? text.replace(from, () => to).replace(and[0], () => and[1]) : text.replace(from, () => to),
  );
  return folder;
}

export const removed = (folder: string): void => rmSync(folder, { recursive: true, force: true });
