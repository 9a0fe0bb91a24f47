package lab;

/** The smallest bean of the golden vectors. */
public class Small {
    public int a;
    public String b;
}
