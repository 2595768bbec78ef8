// Checks a plugin's package.json: fields for npm, for the gateway, and for searches.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fail } from "../../model/error.ts";
import type { LiveOptions } from "../../testing/live-checks.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Check } from "../../testing/check.ts";

export interface PluginManifest {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly type?: string;
  readonly keywords?: readonly string[];
  readonly exports?: unknown;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly engines?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  /**
   * Options with which the package's plugin is mounted for the checks. If it has several plugins,
   * `plugins` maps export paths to options.
   */
  readonly tollgate?: PluginCheckOptions & {
    readonly plugins?: Readonly<Record<string, PluginCheckOptions>>;
  };
}

/** Options of `conformance` that JSON can express. */
export interface PluginCheckOptions {
  readonly with?: Readonly<Record<string, unknown>>;
  readonly credential?: Readonly<Record<string, unknown>>;
  /** Folder, relative to the package. `false` if there are no recordings. */
  readonly recordings?: string | false;
  /**
   * JSON file with the cases of `hooks()`, relative to the package. Allowed only for middleware.
   */
  readonly cases?: string;
  /** Models that `--live` may call, with their prices and a cap on the cost. */
  readonly live?: readonly Pick<LiveOptions, "model" | "price" | "capUsd">[];
}

/**
 * Merges the options of one plugin with the options of all plugins in the package. The former take
 * precedence.
 */
export const checkOptionsOf = (
  { path }: { readonly path: string },
  { plugins, ...shared }: NonNullable<PluginManifest["tollgate"]>,
): PluginCheckOptions => ({ ...shared, ...plugins?.[path] });

export function readManifest(folder: string): PluginManifest {
  const file = join(folder, "package.json");
  if (!existsSync(file))
    return fail("not_found", `package.json not found in ${folder}.`, { code: "no_package" });
  try {
    return JSON.parse(readFileSync(file, "utf8")) as PluginManifest;
  } catch (error) {
    return fail("invalid", `Invalid JSON in ${file}: ${(error as Error).message}`);
  }
}

const PACKAGE_NAME =
  /^(?:@[a-z0-9-][a-z0-9._-]*\/)?tollgate-(provider|frontend|middleware|observer|store|protocol)-[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;

/** Scripts that npm runs on an operator's machine before the operator has read any code. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];

/**
 * Maximum unpacked size of a package, in bytes. Packages contain code and not data, and a larger
 * package slows down every start of a gateway.
 */
const MAX_PACKAGE_BYTES = 5 * 1024 * 1024;

export function checkManifest(folder: string, of: PluginManifest): PackageFinding[] {
  const { name = "", keywords = [], dependencies = {}, peerDependencies = {}, scripts = {} } = of;
  const kind = PACKAGE_NAME.exec(name)?.[1];
  const install = INSTALL_SCRIPTS.filter((script) => scripts[script] !== undefined);
  return [
    createFinding(
      "manifest: name",
      kind !== undefined,
      `"${name}" must have the form tollgate-<kind>-<name>, so that \`use: <name>\` resolves to it`,
    ),
    createFinding(
      "manifest: version",
      /^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(of.version ?? ""),
      `invalid version "${of.version ?? ""}": it must have the form 1.2.3`,
    ),
    createFinding(
      "manifest: keywords",
      ["tollgate", "tollgate-plugin", `tollgate-${kind ?? "<kind>"}`].every((word) =>
        keywords.includes(word),
      ),
      `keywords must include tollgate, tollgate-plugin, and tollgate-${kind ?? "<kind>"}, so that the plugin can be found`,
    ),
    createFinding("manifest: esm", of.type === "module", 'package.json must set "type": "module"'),
    createFinding(
      "manifest: peer",
      peerDependencies["tollgate"] !== undefined,
      'tollgate must be a peer dependency: "peerDependencies": { "tollgate": ">=0.1 ' + '<2" }',
    ),
    createFinding(
      "manifest: no copy of the host",
      dependencies["tollgate"] === undefined,
      "tollgate is a dependency, which installs a second gateway; make it a peer dependency",
    ),
    createFinding(
      "manifest: no install scripts",
      install.length === 0,
      `the package runs code when it is installed: ${install.join(", ")}`,
    ),
    createFinding(
      "manifest: engines",
      of.engines?.["node"] !== undefined,
      'package.json must set the Node version: "engines": { "node": ">=24" }',
    ),
    createFinding(
      "manifest: license",
      Boolean(of.license) && /^LICEN[CS]E/im.test(listFiles(folder).join("\n")),
      "the license is missing: set `license` in package.json and add a LICENSE file",
    ),
    createFinding(
      "manifest: changelog",
      listFiles(folder).includes("CHANGELOG.md"),
      "CHANGELOG.md is missing: operators who lock a version need to know what the " +
        "next one changes",
    ),
  ];
}

/** Files that `npm pack` would put into the tarball. */
export interface PackedFiles {
  readonly size: number;
  readonly files: readonly string[];
}

/**
 * Files that a package must not contain: keys, state directories of gateways, private files of the
 * author.
 */
const SECRET_FILES = /(^|\/)(\.env(\..*)?|\.npmrc|\.tollgate\/.*|id_rsa|.*\.(pem|key|p12|sqlite))$/;

export function checkPackedList({ size, files }: PackedFiles): PackageFinding[] {
  const secret = files.filter((file) => SECRET_FILES.test(file));
  return [
    createFinding(
      "package: size",
      size <= MAX_PACKAGE_BYTES,
      `the package is ${Math.ceil(size / 1024 / 1024)} MiB unpacked, and the limit is 5 MiB; restrict it with \`files\``,
    ),
    createFinding(
      "package: nothing private",
      secret.length === 0,
      `${secret.join(", ")} would be published`,
    ),
  ];
}

const listFiles = (folder: string): string[] => readdirSync(folder);

// Findings of a package check. Each check has a stable name, which the list of defects in
// docs/plugins also contains.

export interface PackageFinding {
  /** Name of the check: "manifest: keywords", "contract: the definition is well-formed". */
  readonly check: string;
  /** The defect and how to fix it. Unset if the check passed. */
  readonly problem?: string;
}

/** Returns a passed finding if `holds`, and otherwise a finding with `wrong` as its problem. */
export const createFinding = (check: string, holds: boolean, wrong: string): PackageFinding =>
  holds ? { check } : { check, problem: wrong };

/** Maximum run time of one check, in milliseconds. */
const CHECK_TIMEOUT_MS = 50_000;

/**
 * Runs a check of the plugin test kit. An error that it throws is the finding's problem, and so is
 * a timeout.
 */
export async function runCheck(check: string, { run }: Check): Promise<PackageFinding> {
  const timer = new AbortController();
  const late = sleep(CHECK_TIMEOUT_MS, `timed out after ${CHECK_TIMEOUT_MS / 1_000} s`, {
    signal: timer.signal,
  }).catch(() => undefined);
  const wrong = await Promise.race([
    late,
    run().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    ),
  ]);
  timer.abort();
  return { check, ...(wrong !== undefined && { problem: wrong }) };
}
