// Detects accesses of a plugin that bypass its context, in a separate process: files, variables,
// processes, and sockets. The probe replaces Node's functions before the plugin is imported, and
// reports each use with the line in the plugin.
import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { dirname, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createTestContext } from "../context.ts";
import { deepFreeze } from "../freeze.ts";

interface ProbeInput {
  readonly module: string;
  readonly options: object;
}

const { module, options } = JSON.parse(process.argv[2]!) as ProbeInput;
const entry = fileURLToPath(module);
const own = packageOf(dirname(entry));
const accesses = new Set<string>();
await using testContext = createTestContext();
const testStateDir = testContext.ctx.stateDir();

function packageOf(folder: string): string {
  const above = dirname(folder);
  return fs.existsSync(resolve(folder, "package.json")) || above === folder
    ? folder
    : packageOf(above);
}

/**
 * Returns the location in the plugin or in its dependencies, such as "src/index.ts:12". Undefined
 * if the call did not come from the plugin.
 */
function callSite(): string | undefined {
  for (const line of (new Error().stack ?? "").split("\n").slice(2)) {
    const [, file, at] = /(?:file:\/\/)?(\/[^():?]+)(?:\?[^:]*)?:(\d+):\d+\)?$/.exec(line) ?? [];
    if (file === undefined || file === import.meta.filename) continue;
    if (file.startsWith(own + sep)) return `${file.slice(own.length + 1)}:${at}`;
  }
  return undefined;
}

function recordAccess(what: string): void {
  const at = callSite();
  if (at !== undefined) accesses.add(`${what} (${at})`);
}

const isAllowedPath = (path: unknown): boolean => {
  if (typeof path !== "string" && !(path instanceof URL) && !Buffer.isBuffer(path)) return true;
  const file = path instanceof URL ? fileURLToPath(path) : resolve(String(path));
  return [own, testStateDir].some((folder) => file === folder || file.startsWith(folder + sep));
};

function watchFunction(
  holder: Record<string, unknown>,
  name: string,
  what: (args: unknown[]) => string | undefined,
) {
  const before = holder[name];
  if (typeof before !== "function") return;
  holder[name] = function (this: unknown, ...args: unknown[]) {
    const access = what(args);
    if (access !== undefined) recordAccess(access);
    return Reflect.apply(before, this, args) as unknown;
  };
}

const FILES =
  /^(readFile|writeFile|appendFile|open|opendir|readdir|mkdir|rm|rmdir|unlink|rename|copyFile|cp|createReadStream|createWriteStream|watch|watchFile|truncate)(Sync)?$/;
for (const holder of [fs, fs.promises] as unknown as Record<string, unknown>[])
  for (const name of Object.keys(holder).filter((each) => FILES.test(each)))
    watchFunction(holder, name, ([path]) =>
      isAllowedPath(path) ? undefined : `the file ${String(path)}`,
    );
for (const name of ["spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync", "fork"])
  watchFunction(
    childProcess as unknown as Record<string, unknown>,
    name,
    ([file]) => `the program ${String(file)}`,
  );
watchFunction(
  net.Socket.prototype as unknown as Record<string, unknown>,
  "connect",
  () => "a network connection that the plugin opened itself",
);
watchFunction(
  globalThis as unknown as Record<string, unknown>,
  "fetch",
  ([url]) => `fetch(${String(url)})`,
);
syncBuiltinESMExports();
process.env = new Proxy(process.env, {
  get(env, name) {
    if (typeof name === "string") recordAccess(`the environment variable ${name}`);
    return Reflect.get(env, name) as string | undefined;
  },
});

const { default: definition } = (await import(pathToFileURL(entry).href)) as {
  default: { setup(options: unknown, ctx: unknown): unknown };
};
await definition.setup(deepFreeze(structuredClone(options)), testContext.ctx);
await new Promise((done) => setTimeout(done, 20));
process.stdout.write(JSON.stringify([...accesses]), () => process.exit(0));
