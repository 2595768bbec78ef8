// The first line of gateway.yaml, by which editors find its schema: where the schema is from that file, not from the one that ships.
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { findPackageRoot } from "../../config/source/default-config.ts";

const SCHEMA_PATH = "schemas/gateway.schema.json";
const SCHEMA_LINE = /^# yaml-language-server: \$schema=.*$/m;

/** `text` as it stands in `file`, which is an absolute path. */
export function withEditorLine(text: string, file: string): string {
  return text.replace(
    SCHEMA_LINE,
    () => `# yaml-language-server: $schema=${findSchema(dirname(file))}`,
  );
}

/** One that `tollgate schema` wrote knows the folder's own plugins too, so it comes first. */
function findSchema(folder: string): string {
  if (existsSync(join(folder, SCHEMA_PATH))) return `./${SCHEMA_PATH}`;
  const shipped = join(findPackageRoot(), SCHEMA_PATH);
  const path = relative(folder, shipped);
  // Beside the file a path moves with its folder; from elsewhere it does not.
  const beside = !path.startsWith("..") && !isAbsolute(path);
  return beside ? `./${path.split(sep).join("/")}` : shipped;
}
