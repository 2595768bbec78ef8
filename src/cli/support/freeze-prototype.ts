// Prevents extensions of `Object.prototype`. A property that a plugin adds there would appear in
// every body, header list, and schema of the process. After this call such a change throws in the
// plugin that makes it. Programs that embed a gateway decide themselves whether to call this.
export const freezeObjectPrototype = (): void => void Object.preventExtensions(Object.prototype);
