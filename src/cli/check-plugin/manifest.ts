// A plugin's package.json, as others will meet it: what npm installs, what a gateway finds, what a person looks for.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fail } from "../../model/error.ts";
import type { LiveOptions } from "../../testing/live-checks.ts";
import { createFinding, type PackageFinding } from "./finding.ts";

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
  /** How its plugin is mounted when it is checked; of several plugins by the path under which they are exported. */
  readonly tollgate?: PluginCheckOptions & {
    readonly plugins?: Readonly<Record<string, PluginCheckOptions>>;
  };
}

/** What `conformance` is told, as far as JSON can say it. */
export interface PluginCheckOptions {
  readonly with?: Readonly<Record<string, unknown>>;
  readonly credential?: Readonly<Record<string, unknown>>;
  /** A folder, relative to the package; false: there are none. */
  readonly recordings?: string | false;
  /** Of a middleware: a JSON file with the cases of `hooks()`, relative to the package. */
  readonly cases?: string;
  /** What `--live` may ask, and what it costs. */
  readonly live?: readonly Pick<LiveOptions, "model" | "price" | "capUsd">[];
}

/** What is said of the one plugin, over what is said of all. */
export const checkOptionsOf = (
  { path }: { readonly path: string },
  { plugins, ...shared }: NonNullable<PluginManifest["tollgate"]>,
): PluginCheckOptions => ({ ...shared, ...plugins?.[path] });

export function readManifest(folder: string): PluginManifest {
  const file = join(folder, "package.json");
  if (!existsSync(file))
    return fail("not_found", `There is no package.json in ${folder}.`, { code: "no_package" });
  try {
    return JSON.parse(readFileSync(file, "utf8")) as PluginManifest;
  } catch (error) {
    return fail("invalid", `${file} is no JSON: ${(error as Error).message}`);
  }
}

const PACKAGE_NAME =
  /^(?:@[a-z0-9-][a-z0-9._-]*\/)?tollgate-(provider|frontend|middleware|observer|store|protocol)-[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;

/** What npm runs on an operator's machine before the operator has read a line. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];

/** Largest package: code, not data. What is larger makes each start of a gateway slower. */
const MAX_PACKAGE_BYTES = 5 * 1024 * 1024;

export function checkManifest(folder: string, of: PluginManifest): PackageFinding[] {
  const { name = "", keywords = [], dependencies = {}, peerDependencies = {}, scripts = {} } = of;
  const kind = PACKAGE_NAME.exec(name)?.[1];
  const install = INSTALL_SCRIPTS.filter((script) => scripts[script] !== undefined);
  return [
    createFinding(
      "manifest: name",
      kind !== undefined,
      `"${name}" is not tollgate-<kind>-<name>, by which \`use: <name>\` finds it`,
    ),
    createFinding(
      "manifest: version",
      /^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(of.version ?? ""),
      `the version "${of.version ?? ""}" is not like 1.2.3`,
    ),
    createFinding(
      "manifest: keywords",
      ["tollgate", "tollgate-plugin", `tollgate-${kind ?? "<kind>"}`].every((word) =>
        keywords.includes(word),
      ),
      `keywords need tollgate, tollgate-plugin and tollgate-${kind ?? "<kind>"}: people find plugins by them`,
    ),
    createFinding("manifest: esm", of.type === "module", 'package.json says no "type": "module"'),
    createFinding(
      "manifest: peer",
      peerDependencies["tollgate"] !== undefined,
      'tollgate is no peer: "peerDependencies": { "tollgate": ">=0.1 <2" }',
    ),
    createFinding(
      "manifest: no copy of the host",
      dependencies["tollgate"] === undefined,
      "tollgate is among its dependencies: it would bring a gateway of its own; make it a peer",
    ),
    createFinding(
      "manifest: no install scripts",
      install.length === 0,
      `it runs code when it is installed: ${install.join(", ")}`,
    ),
    createFinding(
      "manifest: engines",
      of.engines?.["node"] !== undefined,
      'it does not say which Node it needs: "engines": { "node": ">=24" }',
    ),
    createFinding(
      "manifest: licence",
      Boolean(of.license) && /^LICEN[CS]E/im.test(listFiles(folder).join("\n")),
      "there is no licence: `license` in package.json, and a LICENSE file",
    ),
    createFinding(
      "manifest: changelog",
      listFiles(folder).includes("CHANGELOG.md"),
      "there is no CHANGELOG.md: an operator who locks a version wants to know what the next one changes",
    ),
  ];
}

/** What `npm pack` would put into the tarball. */
export interface PackedFiles {
  readonly size: number;
  readonly files: readonly string[];
}

/** What no package may carry: keys, states of gateways, what is private to its author. */
const SECRET_FILES = /(^|\/)(\.env(\..*)?|\.npmrc|\.tollgate\/.*|id_rsa|.*\.(pem|key|p12|sqlite))$/;

export function checkPackedList({ size, files }: PackedFiles): PackageFinding[] {
  const secret = files.filter((file) => SECRET_FILES.test(file));
  return [
    createFinding(
      "package: size",
      size <= MAX_PACKAGE_BYTES,
      `unpacked it is ${Math.ceil(size / 1024 / 1024)} MiB; at most 5: \`files\` says what is in it`,
    ),
    createFinding(
      "package: nothing private",
      secret.length === 0,
      `${secret.join(", ")} would be published`,
    ),
  ];
}

const listFiles = (folder: string): string[] => readdirSync(folder);
