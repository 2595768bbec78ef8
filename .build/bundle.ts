// Bundles the program `tollgate` into few files. Two thirds of the start time were spent on
// finding, reading, and compiling 1,000 small modules, most of which a gateway never uses.
// Third-party packages are bundled with their licenses, and heavy parts that are never used are
// omitted.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { rolldown, type OutputOptions, type Plugin } from "rolldown";

const resolve = createRequire(import.meta.url).resolve;
const within = (name: string, path: string) => join(dirname(resolve(`${name}/package.json`)), path);

/** Replacements of third-party modules, by import name. */
const INSTEAD: Readonly<Record<string, string>> = {
  // The complete module includes fetch, WebSocket, caches, and mocks.
  undici: `
    import Dispatcher from "${within("undici", "lib/dispatcher/dispatcher.js")}";
    import request from "${within("undici", "lib/api/api-request.js")}";
    Object.assign(Dispatcher.prototype, { request });
    export { default as Client } from "${within("undici", "lib/dispatcher/client.js")}";
    export { default as Pool } from "${within("undici", "lib/dispatcher/pool.js")}";
    export { default as Agent } from "${within("undici", "lib/dispatcher/agent.js")}";
    export { default as buildConnector } from "${within("undici", "lib/core/connect.js")}";
  `,
  // listhen prints with it what the gateway turns off. The real module prepares the width of every
  // character when it is loaded.
  consola: `
    export const consola = Object.create(console, { withTag: { value: () => consola } });
    export default consola;
  `,
  "consola/utils": `
    const plain = (text) => text;
    export const colors = new Proxy({}, { get: () => plain });
    export const getColor = () => plain;
  `,
  // listhen creates certificates with it, which the gateway never requests.
  "node-forge": `
    import { createRequire } from "node:module";
    export default new Proxy({}, { get: (_, part) => createRequire(import.meta.url)("node-forge")[part] });
  `,
};

/** Packages that are not bundled, because they are loaded only if a config needs them. */
const APART = /^(ajv|jiti|rolldown|untun|tinyclip|crossws|@parcel)(\/|$)/;

/**
 * Plugin that resolves imports of Tollgate to the fresh build.
 * @param from Output folder of the compiler, used in place of the last build.
 */
const names = (from: string): Plugin => ({
  name: "names",
  resolveId(id) {
    if (Object.hasOwn(INSTEAD, id)) return `\0${id}`;
    return id.startsWith("tollgate/")
      ? join(from, id.replace("tollgate", "src"), "index.js")
      : null;
  },
  load: (id) => INSTEAD[id.replace("\0", "")] ?? null,
});

/**
 * Plugin that reads Node.js's own modules from `process.getBuiltinModule`. An `import` reads every
 * property of such a module to make an ES module of it. One property of `node:http` loads all of
 * Node's built-in undici, and one of `node:crypto` loads all of Web Crypto.
 */
const builtins: Plugin = {
  name: "builtins",
  resolveId: (id, importer = "", { kind }) =>
    id.startsWith("node:") && kind === "import-statement" && !KEEPS_IMPORTS.test(importer)
      ? `\0${id}`
      : null,
  load(id) {
    if (!id.startsWith("\0node:")) return null;
    const name = id.slice(1);
    const members = Object.keys(process.getBuiltinModule(name) ?? {}).filter(
      (member) => /^[A-Za-z_$][\w$]*$/.test(member) && member !== "default",
    );
    // The build removes the members that no module imports.
    return [
      `const module = /*#__PURE__*/ process.getBuiltinModule("${name}");`,
      "const read = (member) => module[member];",
      "export default module;",
      ...members.map(
        (member, at) =>
          `const member${at} = /*#__PURE__*/ read("${member}"); export { member${at} as ${member} };`,
      ),
    ].join("\n");
  },
};

/** Plugin that loads undici's HTTP/2 client, and with it `node:http2`, with the first connection. */
const lazyHttp2: Plugin = {
  name: "lazy-http2",
  transform(code, id) {
    if (!id.endsWith("/undici/lib/dispatcher/client.js")) return null;
    const eager = "const connectH2 = require('./client-h2.js')";
    if (!code.includes(eager)) throw new Error(`${id} does not contain "${eager}"`);
    return code.replace(eager, "const connectH2 = (...to) => require('./client-h2.js')(...to)");
  },
};

/**
 * Escapes all characters outside ASCII. V8 keeps a source with one such character at two bytes per
 * character, and has to decode all of it at each start.
 */
const toAscii = (code: string) =>
  code.replace(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Named chunks, each with the pattern of the modules that it contains. */
interface ChunkGroups {
  groups: { name: string; test: RegExp; priority: number }[];
}

async function bundled(
  from: string,
  names_: Plugin,
  input: Record<string, string>,
  output: Omit<OutputOptions, "codeSplitting"> & { codeSplitting: ChunkGroups | false },
): Promise<string[]> {
  const bundle = await rolldown({
    input,
    platform: "node",
    external: (id) => APART.test(id),
    plugins: [names_, builtins, lazyHttp2],
    // Importing Node.js's own modules has no side effects.
    treeshake: { moduleSideEffects: (id) => !/^\0?node:/.test(id) },
    experimental: { attachDebugInfo: "none" },
  });
  const { output: files } = await bundle.write({
    dir: join(from, "src/cli"),
    entryFileNames: "[name].js",
    comments: { legal: true, annotation: false, jsdoc: false },
    ...output,
  });
  const chunks = files.filter((file) => file.type === "chunk");
  for (const { fileName, code } of chunks)
    writeFileSync(join(from, "src/cli", fileName), toAscii(code));
  for (const { name, test } of output.codeSplitting ? output.codeSplitting.groups : [])
    if (!chunks.some((chunk) => chunk.name === name))
      throw new Error(`No module matches the pattern of the chunk "${name}": ${test}`);
  const restarting = chunks.find((chunk) => chunk.name === "setup");
  if (restarting?.imports.some((file) => chunks.some(({ fileName }) => fileName === file)))
    throw new Error(`The chunk "setup" imports ${restarting.imports.join(", ")}`);
  return chunks.flatMap((chunk) => chunk.moduleIds);
}

/**
 * Bundles into `from`/src/cli. The files keep the paths of the programs, because the programs use
 * them to find each other and the package.
 */
export async function bundle(from: string): Promise<void> {
  const cli = (name: string) => join(from, "src/cli", `${name}.js`);
  const own = names(from);
  const modules = await bundled(
    from,
    own,
    { bin: cli("bin"), worker: cli("worker"), "plugin-process": cli("plugin-process") },
    {
      chunkFileNames: "[name]-[hash].js",
      codeSplitting: {
        groups: [
          // Loaded alone and first: the process restarts itself before it loads anything else, and
          // the compile cache covers only the modules after it.
          { name: "setup", test: SETUP, priority: 4 },
          { name: "main", test: /src\/cli\/main\.js$/, priority: 3 },
          { name: "serve", test: FIRST, priority: 2 },
          {
            name: "running",
            test: /src\/(server\/gateway-server|runtime\/http\/listhen-bind)\.js$/,
            priority: 1,
          },
        ],
      },
    },
  );
  // Threads have separate bundles. The bundles share no modules with the program, so each bundle
  // contains only what its thread needs.
  const threads = {
    "thread-entry": "plugins/stores/sqlite/threads/thread-entry.js",
    "watchdog-thread": "src/runtime/health/watchdog-thread.js",
  };
  for (const [name, file] of Object.entries(threads))
    modules.push(
      ...(await bundled(from, own, { [name]: join(from, file) }, { codeSplitting: false })),
    );
  writeFileSync(join(from, "THIRD_PARTY_LICENSES"), licences(modules));
}

/** Modules that are loaded before the process restarts itself. They import nothing else. */
const SETUP =
  /src\/(cli\/support\/(compile-cache|process-setup)|lib\/(disable-debugger|package-root|source-file))\.js$/;

/** The chunk "setup" imports no other chunk, and the bundler's own module is part of each chunk. */
const KEEPS_IMPORTS = new RegExp(`${SETUP.source}|^\\0rolldown`);

/** Modules that are loaded before serving: the config, and the plugins that most configs mount. */
const FIRST =
  /src\/cli\/commands\/run\/serve\.js$|plugins\/(middleware\/|frontends\/(chat-completions|messages|responses|models)\.|stores\/sqlite\.|providers\/(openai|anthropic)-compatible\.)/;

/** Returns the license texts that the bundled packages require to be included. */
function licences(modules: readonly string[]): string {
  const folders = modules.flatMap((id) => {
    const found = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
    return found !== undefined && existsSync(join(found, "package.json")) ? [found] : [];
  });
  return [...new Set(folders)]
    .map((folder) => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(folder, "package.json"), "utf8"),
      ) as Record<string, string>;
      const texts = ["", "dist"].flatMap((place) => textsIn(join(folder, place)));
      return `${name} ${version}\n\n${texts.join("\n\n") || license}\n`;
    })
    .sort()
    .join(`\n${"-".repeat(80)}\n\n`);
}

/** Some packages list the code that they bundle in this folder. */
function textsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => /^(third.party.)?licen[cs]es?(\.|$)/i.test(name))
    .map((name) => {
      const bytes = readFileSync(join(folder, name));
      return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString().trim();
    });
}
