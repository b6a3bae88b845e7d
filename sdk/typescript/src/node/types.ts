// util.types.

const tag = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);
const typed = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!;
const typedName = (value: unknown): string | undefined => (ArrayBuffer.isView(value) ? typed.call(value) : undefined);

/** Whether a getter or a method of the class accepts the value. */
const accepts = (does: Function, ...given: unknown[]) => (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false;
  try {
    does.apply(value, given);
    return true;
  } catch {
    return false;
  }
};
const getter = (of: any, name: string) => Object.getOwnPropertyDescriptor(of, name)!.get!;
const boxed = (of: any) => accepts(of.prototype.valueOf);

const isAsync = (value: any): boolean => typeof value === "function" && (tag(value) === "AsyncFunction" || tag(value) === "AsyncGeneratorFunction");
const isGenerator = (value: any): boolean => typeof value === "function" && (tag(value) === "GeneratorFunction" || tag(value) === "AsyncGeneratorFunction");

const types: Record<string, (value: any) => boolean> = {
  isDate: accepts(Date.prototype.getTime),
  isRegExp: (value) => value instanceof RegExp && tag(value) === "RegExp",
  isMap: accepts(getter(Map.prototype, "size")),
  isSet: accepts(getter(Set.prototype, "size")),
  isWeakMap: accepts(WeakMap.prototype.has, {}),
  isWeakSet: accepts(WeakSet.prototype.has, {}),
  isPromise: (value) => value instanceof Promise,
  isNativeError: (value) => value instanceof Error && (Error as any).isError?.(value) !== false,
  isArrayBuffer: accepts(getter(ArrayBuffer.prototype, "byteLength")),
  isSharedArrayBuffer: (value) => tag(value) === "SharedArrayBuffer",
  isAnyArrayBuffer: (value) => types.isArrayBuffer(value) || types.isSharedArrayBuffer(value),
  isArrayBufferView: (value) => ArrayBuffer.isView(value),
  isDataView: accepts(getter(DataView.prototype, "byteLength")),
  isTypedArray: (value) => typedName(value) !== undefined,
  isAsyncFunction: isAsync,
  isGeneratorFunction: isGenerator,
  isGeneratorObject: (value) => tag(value) === "Generator" || tag(value) === "AsyncGenerator",
  isMapIterator: (value) => tag(value) === "Map Iterator",
  isSetIterator: (value) => tag(value) === "Set Iterator",
  isArgumentsObject: (value) => tag(value) === "Arguments",
  isModuleNamespaceObject: (value) => tag(value) === "Module",
  isStringObject: boxed(String),
  isNumberObject: boxed(Number),
  isBooleanObject: boxed(Boolean),
  isBigIntObject: boxed(BigInt),
  isSymbolObject: boxed(Symbol),
  isBoxedPrimitive: (value) => [String, Number, Boolean, BigInt, Symbol].some((kind) => boxed(kind)(value)),
  isProxy: () => false, // the language has no way to find out
  isExternal: () => false,
  isCryptoKey: (value) => typeof CryptoKey === "function" && value instanceof CryptoKey,
  isKeyObject: () => false,
};
for (const name of ["Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"]) {
  types[`is${name}`] = (value) => typedName(value) === name;
}

export default types;
