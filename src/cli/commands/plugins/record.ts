import { relative, resolve } from "node:path";
import { didYouMean, plural } from "../../../lib/text.ts";
import { fail } from "../../../model/error.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { importTestingKit } from "../../support/shared-modules.ts";
import { configFile, configName, requireGatewayConfig } from "../../support/load-config.ts";
import { print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "record <provider>/<model> [options]",
  description:
    "Records responses of a provider in gateway.yaml, streaming and non-streaming, " +
    "for the tests of a plugin. Secrets are masked, and only headers that describe " +
    "the response are kept. The requests are billed.",
  options: {
    ...CONFIG_OPTIONS,
    to: {
      placeholder: "directory",
      description: "Directory for recordings (default: ./test/recordings)",
    },
    prompt: { placeholder: "text", description: "Prompt to send" },
    "max-tokens": {
      placeholder: "number",
      description: "Maximum length of a response, in tokens (default: 64)",
    },
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate record acme/large-2",
    "tollgate record acme/large-2 --to recordings --prompt 'Hi'",
  ],
  async run(given) {
    const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(given.positionals[0] ?? "") ?? [];
    if (model === "")
      fail("invalid", "Missing model. Pass it as <provider>/<model>.", { code: "usage" });
    const file = configFile(given);
    const { config } = await requireGatewayConfig(file);
    const provider = config.providers.get(name);
    if (!provider) {
      return fail(
        "not_found",
        `Unknown provider "${name}" in ${configName(file)}.${didYouMean(name, config.providers.keys())}`,
      );
    }
    const most = given.getText("max-tokens") ?? "64";
    if (!/^[1-9]\d{0,4}$/.test(most))
      fail("invalid", "--max-tokens must be a number.", { code: "usage" });
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
      print(`Wrote ${plural(made.length, "recording")}. Review them before you publish them.`);
    }
    return EXIT_CODES.ok;
  },
};
