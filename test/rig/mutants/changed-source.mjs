// Loaded before a gateway: one line of its own source is another. The file that has lost that line is not loaded at all, so that no
// plant becomes none.
import { registerHooks } from "node:module";

const { in: file, line, instead } = JSON.parse(process.env.CHANGED_SOURCE);
const path = file.startsWith("plugins/") ? `/${file}` : `/src/${file}`;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith(path)) return loaded;
    const sound = String(loaded.source);
    if (!sound.includes(line)) throw new Error(`${path} has no line for the plant: ${line}`);
    return { ...loaded, source: sound.replace(line, () => instead) };
  },
});
