import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import jdk.incubator.foreign.CLinker;
import jdk.incubator.foreign.FunctionDescriptor;

/** fcntl(2) through jdk.incubator.foreign, which has this API only in Java 17. */
final class Fcntl {
    private Fcntl() {}

    static MethodHandle handle() {
        return CLinker.getInstance()
                .downcallHandle(
                        CLinker.systemLookup().lookup("fcntl").orElseThrow(),
                        MethodType.methodType(int.class, int.class, int.class, int.class),
                        FunctionDescriptor.of(CLinker.C_INT, CLinker.C_INT, CLinker.C_INT, CLinker.C_INT));
    }
}
