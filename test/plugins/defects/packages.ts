// Defects of packages, which affect npm, a gateway, or an operator before any code of the plugin
// runs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

type Manifest = Record<string, any>;

/** One defect of a package, and the check of `check-plugin` that must find it. */
export interface PackageDefect {
  readonly what: string;
  plant(manifest: Manifest, folder: string): void;
  readonly check: string;
  readonly says: RegExp;
}

const exported = (target: object) => (manifest: Manifest) =>
  void (manifest["exports"] = { ".": target });

export const packageDefects: readonly PackageDefect[] = [
  {
    what: "a name that `use:` cannot resolve",
    plant: (m) => void (m["name"] = "acme-for-tollgate"),
    check: "manifest: name",
    says: /tollgate-<kind>-<name>/,
  },
  {
    what: "a name that does not match the plugin",
    plant: (m) => void (m["name"] = "tollgate-provider-other"),
    check: "manifest: named for its plugin",
    says: /rename it to tollgate-provider-acme/,
  },
  {
    what: "the keyword is missing",
    plant: (m) => void (m["keywords"] = ["llm"]),
    check: "manifest: keywords",
    says: /tollgate-plugin/,
  },
  {
    what: "no version",
    plant: (m) => void (m["version"] = "next"),
    check: "manifest: version",
    says: /1\.2\.3/,
  },
  {
    what: "CommonJS",
    plant: (m) => void (m["type"] = "commonjs"),
    check: "manifest: esm",
    says: /"module"/,
  },
  {
    what: "Tollgate is not a peer dependency",
    plant: (m) => void delete m["peerDependencies"],
    check: "manifest: peer",
    says: /peerDependencies/,
  },
  {
    what: "Tollgate is a dependency",
    plant: (m) => void (m["dependencies"] = { tollgate: "^0.1.0" }),
    check: "manifest: no copy of the host",
    says: /installs a second gateway/,
  },
  {
    what: "an install script",
    plant: (m) => void (m["scripts"]["postinstall"] = "node ."),
    check: "manifest: no install scripts",
    says: /postinstall/,
  },
  {
    what: "no `engines.node`",
    plant: (m) => void delete m["engines"],
    check: "manifest: engines",
    says: />=24/,
  },
  {
    what: "no license",
    plant: (m) => void delete m["license"],
    check: "manifest: license",
    says: /LICENSE/,
  },
  {
    what: "it exports TypeScript",
    plant: exported({ types: "./src/index.ts", default: "./src/index.ts" }),
    check: "exports: javascript",
    says: /TypeScript/,
  },
  {
    what: "its exports are not built",
    plant: exported({ types: "./dist/index.d.ts", default: "./dist/other.js" }),
    check: "exports: built",
    says: /npm run build/,
  },
  {
    what: "no types",
    plant: exported({ default: "./dist/index.js" }),
    check: "exports: types",
    says: /has no types/,
  },
  {
    what: "an import that fails",
    plant: (_m, folder) => writeFileSync(join(folder, "dist/index.js"), 'throw new Error("No.");'),
    check: "definition .",
    says: /the import failed: Error: No\./,
  },
  {
    what: "it exports no plugin",
    plant: (_m, folder) => writeFileSync(join(folder, "dist/index.js"), "export default 1;"),
    check: "exports: a plugin",
    says: /defineProvider/,
  },
  {
    what: "an unknown member",
    plant: (_m, folder) =>
      writeFileSync(
        join(folder, "dist/index.js"),
        'export default { "~tollgate": "provider", api: 1, name: "acme", sumary: "x", setup() {} };',
      ),
    check: "definition .",
    says: /sumary/,
  },
  {
    what: "the author's own keys are published",
    plant: (m, folder) => {
      writeFileSync(join(folder, "dist/.env"), "KEY=1");
      m["files"] = ["dist"];
    },
    check: "package: nothing private",
    says: /\.env would be published/,
  },
  {
    what: "the README's option table differs from the schema",
    plant: (_m, folder) =>
      writeFileSync(join(folder, "README.md"), "<!-- options -->\nNone.\n<!-- /options -->\n"),
    check: "readme: the table of its options",
    says: /the table is out of date/,
  },
];
