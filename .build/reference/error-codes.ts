// Collects the error codes of the source with the kinds of the errors that have them.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BOUNDS, type Bound } from "../../src/lib/bounds.ts";
import { ERRORS, type ErrorKind } from "../../src/model/error.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface FoundCode {
  readonly code: string;
  /** Kinds of the errors, as far as the source names them next to the code. */
  readonly kinds: ReadonlySet<ErrorKind>;
  readonly files: ReadonlySet<string>;
}

/** A code as a member, a ternary's branch, or a constant of codes. */
const CODE =
  /\bcode(?::|\s*=|: code === "\w+" \?)\s*\(?"([a-z][a-z0-9_]+)"|_CODE = "([a-z_]+)"|ERROR_CODES = \{ money: "([a-z_]+)"/g;
/** Kinds of codes whose errors name the kind elsewhere. */
const KNOWN_KINDS: Readonly<Record<string, ErrorKind>> = {
  client_credential_missing: "unauthenticated",
  client_credential_not_allowed: "forbidden",
  gateway_overloaded: "overloaded",
  insufficient_quota: "quota",
  state_unsupported: "unsupported",
  thread_unsupported_request: "unsupported",
};
/** Number of characters before a code in which its kind is named. */
const REACH = 700;
const KIND = new RegExp(`"(${Object.keys(ERRORS).join("|")})"`, "g");

/**
 * Files whose errors are not shown to readers of the reference: pages of the console, and test
 * helpers.
 */
const isSkipped = (path: string): boolean =>
  /observers\/console\/web\/|node_modules|\/dist\/|^src\/testing\/|\.d\.ts$/.test(path);

export function collectErrorCodes(): Map<string, FoundCode> {
  const found = new Map<string, { code: string; kinds: Set<ErrorKind>; files: Set<string> }>();
  for (const path of globSync("{src,plugins}/**/*.ts", { cwd: ROOT }).toSorted()) {
    if (isSkipped(path)) continue;
    const text = readFileSync(join(ROOT, path), "utf8");
    for (const match of text.matchAll(CODE)) {
      const code = (match[1] ?? match[2] ?? match[3])!;
      const before = text.slice(Math.max(0, match.index - REACH), match.index);
      const start = Math.max(
        before.lastIndexOf("fail("),
        before.lastIndexOf("Fault("),
        before.lastIndexOf("kind:"),
      );
      const call = start < 0 ? "" : before.slice(start);
      const one = found.get(code) ?? { code, kinds: new Set(), files: new Set() };
      const kind = KNOWN_KINDS[code] ?? call.match(KIND)?.[0].slice(1, -1);
      if (kind !== undefined) one.kinds.add(kind as ErrorKind);
      one.files.add(path);
      found.set(code, one);
    }
  }
  for (const { error } of Object.values(BOUNDS) as Bound[]) {
    if (!error) continue;
    const [kind, code] = error;
    const one = found.get(code) ?? { code, kinds: new Set(), files: new Set() };
    one.kinds.add(kind);
    one.files.add("src/lib/bounds.ts");
    found.set(code, one);
  }
  return found;
}
