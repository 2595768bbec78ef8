// Preloaded into a gateway: replaces one line of its source. A file without that line is not loaded
// at all, so that no planted defect has no effect.
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
