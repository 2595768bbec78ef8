import { relative, resolve } from "node:path";
import { nearest, plural } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, CONFIG, EXIT } from "./command.ts";
import { kit } from "./kit.ts";
import { configFile, load, nameOf } from "./loading.ts";
import { say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "record <provider>/<model> [options]",
  about:
    "Asks a provider of gateway.yaml, streamed and whole, and writes down what it says, for the tests of a plugin. Every secret is masked, and " +
    "of headers those are kept that speak of the answer. It costs what such a request costs.",
  options: {
    ...CONFIG,
    to: { value: "folder", about: "where recordings are kept; ./test/recordings by default" },
    words: { value: "text", about: "what is asked" },
    "max-tokens": { value: "number", about: "how long an answer may be; 64 by default" },
  },
  words: { least: 1, most: 1 },
  examples: [
    "tollgate record acme/large-2",
    "tollgate record acme/large-2 --to recordings --words 'Hi'",
  ],
  async run(given) {
    const [, name = "", model = ""] = /^([^/]+)\/(.+)$/.exec(given.words[0] ?? "") ?? [];
    if (model === "") fail("invalid", "Say <provider>/<model>.", { code: "usage" });
    const file = configFile(given);
    const { config } = await load(file);
    if (!config) return fail("invalid", `${nameOf(file)} has errors, see tollgate check.`);
    const provider = config.providers.get(name);
    if (!provider) {
      const near = nearest(name, config.providers.keys());
      const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
      return fail("not_found", `${nameOf(file)} has no provider "${name}".${meant}`);
    }
    const most = given.text("max-tokens") ?? "64";
    if (!/^[1-9]\d{0,4}$/.test(most))
      fail("invalid", "--max-tokens is a number.", { code: "usage" });
    const { recorded, written } = await kit();
    const words = given.text("words");
    const exchanges = await recorded(provider.definition, {
      with: provider.options,
      credential: provider.credentials[0]?.fields ?? {},
      model,
      maxTokens: Number(most),
      ...(words !== undefined && { words }),
    });
    const folders = written(exchanges, resolve(given.text("to") ?? "test/recordings"));
    const made = folders.map((path, i) => ({ path, status: exchanges[i]?.status ?? 0 }));
    if (given.json) sayJson({ recordings: made });
    else {
      for (const { path, status } of made) say(`${status}  ${relative(process.cwd(), path)}`);
      say(`${plural(made.length, "recording")}. Read them before you publish them.`);
    }
    return EXIT.fine;
  },
};
