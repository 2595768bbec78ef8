// What a person at a terminal sees first: where it is, the key, and a request that answers.
import type { Gateway } from "../gateway/types.ts";
import { version } from "./loading.ts";
import { near, sayLeftOut } from "./report.ts";
import { columns, paint } from "./terminal.ts";

export async function banner(gateway: Gateway, file: string | undefined): Promise<string> {
  const key = gateway.firstKey;
  const { leftOut } = await gateway.status();
  const facts = [
    ["url", paint("cyan", gateway.url)],
    ...(gateway.adminUrl === undefined ? [] : [["admin", gateway.adminUrl]]),
    key === undefined
      ? ["key", "made before; `tollgate keys create` makes another"]
      : ["key", `${paint("yellow", key)}  shown this once`],
    [
      "config",
      file === undefined
        ? "none here: the default, which answers offline; `tollgate init > gateway.yaml` writes one"
        : near(file),
    ],
    ["state", near(gateway.stateDir)],
    ...(leftOut.length > 0 ? [["left out", sayLeftOut(leftOut)]] : []),
  ].map(([name, value]) => [paint("gray", name!), value!]);
  const body = `{"model":"${await someModel(gateway)}","messages":[{"role":"user","content":"Hello"}]}`;
  return [
    "",
    `  ${paint("bold", `tollgate ${version}`)}`,
    "",
    columns(facts, "  "),
    "",
    `  curl ${gateway.url}/v1/chat/completions \\`,
    `    -H 'authorization: Bearer ${key ?? "<key>"}' -H 'content-type: application/json' \\`,
    `    -d '${body}'`,
    "",
    `  ${paint("gray", `Ctrl-C stops it, kill -HUP ${process.pid} reloads the config.`)}`,
    "",
  ].join("\n");
}

/** A model that answers on any machine, if there is one. */
const someModel = (gateway: Gateway): Promise<string> =>
  gateway.explain("demo/echo").then(
    ({ candidates }) => (candidates.length > 0 ? "demo/echo" : "<provider>/<model>"),
    () => "<provider>/<model>",
  );
