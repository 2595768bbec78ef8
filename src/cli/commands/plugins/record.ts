import { relative, resolve } from "node:path";
import { nearest, plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { importTestingKit } from "../../support/testing-kit.ts";
import { configFile, loadGatewayConfig, configName } from "../../support/load-config.ts";
import { print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "record <provider>/<model> [options]",
  description:
    "Asks a provider of gateway.yaml, streamed and whole, and writes down what it says, for the tests of a plugin. Every secret is masked, and " +
    "of headers those are kept that speak of the answer. It costs what such a request costs.",
  options: {
    ...CONFIG_OPTIONS,
    to: {
      placeholder: "directory",
      description: "where recordings are kept; ./test/recordings by default",
    },
    prompt: { placeholder: "text", description: "prompt to send" },
    "max-tokens": {
      placeholder: "number",
      description: "how long an answer may be; 64 by default",
    },
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate record acme/large-2",
    "tollgate record acme/large-2 --to recordings --prompt 'Hi'",
  ],
  async run(given) {
    const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(given.positionals[0] ?? "") ?? [];
    if (model === "") fail("invalid", "Say <provider>/<model>.", { code: "usage" });
    const file = configFile(given);
    const { config } = await loadGatewayConfig(file);
    if (!config) return fail("invalid", `${configName(file)} has errors, see tollgate check.`);
    const provider = config.providers.get(name);
    if (!provider) {
      const near = nearest(name, config.providers.keys());
      const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
      return fail("not_found", `${configName(file)} has no provider "${name}".${meant}`);
    }
    const most = given.getText("max-tokens") ?? "64";
    if (!/^[1-9]\d{0,4}$/.test(most))
      fail("invalid", "--max-tokens is a number.", { code: "usage" });
    const { recordProvider, writeRecordings } = await importTestingKit();
    const prompt = given.getText("prompt");
    const exchanges = await recordProvider(provider.definition, {
      with: provider.options,
      credential: provider.credentials[0]?.fields ?? {},
      model,
      maxTokens: Number(most),
      ...(prompt !== undefined && { prompt }),
    });
    const folders = writeRecordings(exchanges, resolve(given.getText("to") ?? "test/recordings"));
    const made = folders.map((path, i) => ({ path, status: exchanges[i]?.status ?? 0 }));
    if (given.json) printJson({ recordings: made });
    else {
      for (const { path, status } of made) print(`${status}  ${relative(process.cwd(), path)}`);
      print(`${plural(made.length, "recording")}. Read them before you publish them.`);
    }
    return EXIT_CODES.ok;
  },
};
