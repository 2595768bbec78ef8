// A shorter name for the commands of the store, which are also available as `tollgate plugin
// store`.
import type { CliCommand } from "../../support/command.ts";
import { command as plugin } from "../plugins/plugin.ts";

export const command: CliCommand = {
  usage: "store [command] [options]",
  description:
    "Lists or runs the commands of the mounted store, in the running gateway or on " +
    "its files if no gateway is running. Same as tollgate plugin store. To migrate a " +
    "ledger to another type of store, use tollgate store copy.",
  options: plugin.options,
  positionals: { least: 0, most: 1 },
  examples: ["tollgate store", "tollgate store status", "tollgate store copy --help"],
  async resolveCommand(given) {
    const [name] = given.positionals;
    if (name === undefined) return command;
    if (name === "copy") return (await import("./store-copy.ts")).command;
    const found = await plugin.resolveCommand!({ ...given, positionals: ["store", name] });
    return {
      ...found,
      usage: found.usage.replace(/^plugin /, ""),
      examples: found.examples.map((line) => line.replace("tollgate plugin ", "tollgate ")),
      positionals: { least: 1, most: 1 },
    };
  },
  run: (given) => plugin.run({ ...given, positionals: ["store"] }),
};
