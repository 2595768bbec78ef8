// Defects of packages: what npm, a gateway or an operator meets before any code of the plugin runs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

type Manifest = Record<string, any>;

/** One defect of a package, and the check of `check-plugin` that has to find it. */
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
    what: "a name by which `use:` does not find it",
    plant: (m) => void (m["name"] = "acme-for-tollgate"),
    check: "manifest: name",
    says: /tollgate-<kind>-<name>/,
  },
  {
    what: "a name that is another plugin's",
    plant: (m) => void (m["name"] = "tollgate-provider-other"),
    check: "manifest: named for its plugin",
    says: /rename it to tollgate-provider-acme/,
  },
  {
    what: "no keyword by which it is found",
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
    what: "Tollgate is no peer",
    plant: (m) => void delete m["peerDependencies"],
    check: "manifest: peer",
    says: /peerDependencies/,
  },
  {
    what: "a Tollgate of its own",
    plant: (m) => void (m["dependencies"] = { tollgate: "^0.1.0" }),
    check: "manifest: no copy of the host",
    says: /installs a second gateway/,
  },
  {
    what: "code that runs when it is installed",
    plant: (m) => void (m["scripts"]["postinstall"] = "node ."),
    check: "manifest: no install scripts",
    says: /postinstall/,
  },
  {
    what: "it does not say which Node it needs",
    plant: (m) => void delete m["engines"],
    check: "manifest: engines",
    says: />=24/,
  },
  {
    what: "no licence",
    plant: (m) => void delete m["license"],
    check: "manifest: licence",
    says: /LICENSE/,
  },
  {
    what: "TypeScript is what it exports",
    plant: exported({ types: "./src/index.ts", default: "./src/index.ts" }),
    check: "exports: javascript",
    says: /TypeScript/,
  },
  {
    what: "what it exports is not built",
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
    what: "no plugin is exported",
    plant: (_m, folder) => writeFileSync(join(folder, "dist/index.js"), "export default 1;"),
    check: "exports: a plugin",
    says: /defineProvider/,
  },
  {
    what: "a member that nothing calls",
    plant: (_m, folder) =>
      writeFileSync(
        join(folder, "dist/index.js"),
        'export default { "~tollgate": "provider", api: 1, name: "acme", sumary: "x", setup() {} };',
      ),
    check: "definition .",
    says: /sumary/,
  },
  {
    what: "its author's own keys are published",
    plant: (m, folder) => {
      writeFileSync(join(folder, "dist/.env"), "KEY=1");
      m["files"] = ["dist"];
    },
    check: "package: nothing private",
    says: /\.env would be published/,
  },
  {
    what: "its page says another thing than its schema",
    plant: (_m, folder) =>
      writeFileSync(join(folder, "README.md"), "<!-- options -->\nNone.\n<!-- /options -->\n"),
    check: "readme: the table of its options",
    says: /the table is out of date/,
  },
];
