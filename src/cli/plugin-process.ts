// Entry point of the process of an isolated plugin (`isolate: child`). The gateway passes a
// connection to it and allows it to read the plugin's code.
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { PluginProcess } from "../isolation/inside/plugin-process.ts";
import { readImportGraph } from "../loader/import-graph.ts";
import { createLoader } from "../loader/plugin-loader.ts";
import { lockModules } from "../loader/locked-modules.ts";
import { createSharedModules } from "./support/shared-modules.ts";
import { freezeObjectPrototype } from "./support/process-setup.ts";
import { blockSignalSending } from "./block-signals.ts";

freezeObjectPrototype();
blockSignalSending();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)
  process.on(signal, () => {});

const plugin = new PluginProcess(async (entry, locked) => {
  if (locked) lockModules(locked.name, new Map(Object.entries(locked.files)));
  const texts = readImportGraph(entry).files.map((file) => readFileSync(file, "utf8"));
  const named = (specifier: string) => texts.some((text) => text.includes(specifier));
  const load = createLoader({ builtin: {}, hostModules: await createSharedModules(named) });
  const found = await load(entry, "middleware", entry);
  if ("problem" in found) throw new Error(found.problem.message);
  return found.definition as Record<string, unknown>;
});
plugin.serve(new Socket({ fd: 3 }));
