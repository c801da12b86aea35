import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/** fcntl(2) through java.lang.foreign, available since Java 22. */
final class Fcntl {
    private static final int FIXED_ARGUMENTS = 2;

    private Fcntl() {}

    static MethodHandle handle() {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().find("fcntl").orElseThrow(),
                FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
                Linker.Option.firstVariadicArg(FIXED_ARGUMENTS));
    }
}
