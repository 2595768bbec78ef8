// Sets the first line of gateway.yaml, by which editors find its JSON schema. The path is relative
// to that file, not to the one that ships.
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { findPackageRoot } from "../../config/source/default-config.ts";

const SCHEMA_PATH = "schemas/gateway.schema.json";
const SCHEMA_LINE = /^# yaml-language-server: \$schema=.*$/m;

/**
 * Returns the text with its first line.
 * @param text Content of `file`.
 * @param file Absolute path.
 */
export function withEditorLine(text: string, file: string): string {
  return text.replace(
    SCHEMA_LINE,
    () => `# yaml-language-server: $schema=${findSchema(dirname(file))}`,
  );
}

/**
 * Returns the schema that `tollgate schema` wrote if it exists, because that one includes the
 * folder's own plugins.
 */
function findSchema(folder: string): string {
  if (existsSync(join(folder, SCHEMA_PATH))) return `./${SCHEMA_PATH}`;
  const shipped = join(findPackageRoot(), SCHEMA_PATH);
  const path = relative(folder, shipped);
  // A path inside the folder stays valid when the folder moves. A path outside of it does not.
  const beside = !path.startsWith("..") && !isAbsolute(path);
  return beside ? `./${path.split(sep).join("/")}` : shipped;
}
