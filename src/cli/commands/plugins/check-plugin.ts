import { existsSync, realpathSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES } from "../../support/command.ts";
import { checkPackage } from "../../check-plugin/check-package.ts";
import { paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "check-plugin [folder|package] [options]",
  description:
    "Checks a plugin package as it would be published: package.json, exports, " +
    "README, and all contract tests, with the addresses and files that it uses. The " +
    "plugin's code is executed. Exits with 1 if a check fails.",
  options: {
    write: { description: "Update the options table in the plugin's README" },
    live: {
      description:
        "Also call the provider itself: the models under tollgate.live in package.json, " +
        "with the key from the environment (such as ACME_API_KEY for api_key of acme). " +
        "This costs a few tokens.",
    },
    all: { description: "Also list passed checks" },
  },
  positionals: { least: 0, most: 1 },
  examples: [
    "tollgate check-plugin .",
    "tollgate check-plugin . --live",
    "tollgate check-plugin tollgate-provider-acme --json",
  ],
  async run(given) {
    const folder = packageFolder(given.positionals[0] ?? ".");
    const { name, version, plugins, findings } = await checkPackage(folder, {
      write: given.has("write"),
      live: given.has("live"),
    });
    const wrong = findings.filter((one) => one.problem !== undefined);
    const passed = findings.length - wrong.length;
    if (given.json)
      printJson({
        ok: wrong.length === 0,
        name,
        version,
        plugins,
        passed,
        failed: wrong.length,
        findings,
      });
    else {
      for (const one of given.has("all") ? findings : wrong)
        print(
          one.problem === undefined
            ? `${paint("green", "ok")}     ${one.check}`
            : `${paint("red", "wrong")}  ${paint("bold", one.check)}\n       ${one.problem}`,
        );
      if (wrong.length > 0) print();
      print(
        `${name}@${version} (${plugins.join(", ") || "no plugin"}): ${passed} of ${plural(findings.length, "check")} passed`,
      );
    }
    return wrong.length === 0 ? EXIT_CODES.ok : EXIT_CODES.failed;
  },
};

/**
 * Returns the folder of a package. `folderOrName`: a folder, or the name of a package that is
 * installed in the current folder.
 */
function packageFolder(folderOrName: string): string {
  if (existsSync(join(folderOrName, "package.json"))) return realpathSync(folderOrName);
  const here = pathToFileURL(resolve("package.json"));
  try {
    // A path that does not exist is excluded, because `findPackageJSON` would find the package that
    // contains it.
    const found = /^[./]/.test(folderOrName) ? undefined : findPackageJSON(folderOrName, here);
    if (found !== undefined) return realpathSync(dirname(found));
  } catch {}
  return fail(
    "not_found",
    `${folderOrName} is not a directory with a package.json, and not an installed package.`,
    {
      code: "no_package",
    },
  );
}
